"""One process of a run directory: its journal as records by type, and its launch file as columns.

The format is docs/run-directory.md. Whatever a kill cut off is dropped and counted; unknown records are kept out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from tprof.model import TIME_LIMIT, within
from tprof.read.inflate import Source
from tprof.read.run_records import checked

if TYPE_CHECKING:
    from pathlib import Path

Record = dict[str, Any]
JOURNALS: Final = ("process-*.jsonl", "process-*.jsonl.gz")
_HEADER: Final = 16
_MAGIC: Final = b"TPROFLCH"
_CHUNK: Final = np.dtype([("magic", "S4"), ("n", "<u4"), ("tid", "<i8"), ("t_ns", "<i8")])
_LAUNCH_BYTES: Final = 28
_COLUMNS: Final = (("t_enter", "<i8"), ("t_exit", "<i8"), ("shape", "<i4"), ("span", "<i4"), ("request", "<i4"))


@dataclass
class Span:
    """A begin with its end; `end` is None where the process never said so."""

    id: int
    parent: int
    kind: str
    phase: str | None
    name: str
    tid: int
    request: int
    start: int
    end: int | None = None
    ok: bool = True
    error: str | None = None
    attrs: Record = field(default_factory=dict)


@dataclass
class Journal:
    """What one process wrote."""

    path: Path
    records: dict[str, list[Record]] = field(default_factory=dict)
    spans: dict[int, Span] = field(default_factory=dict)
    cut_lines: int = 0
    last_ns: int = 0

    @property
    def process(self) -> Record:
        """The first line; empty where the process was killed before it was written."""
        return next(iter(self.records.get("process", [])), {})

    @property
    def pid(self) -> int:
        """Process id, from the first line or else from the file's name."""
        named = self.path.name.split("-", 1)[-1].split(".", 1)[0]
        return int(self.process.get("pid", named if named.isdigit() else 0))

    @property
    def clock_pairs(self) -> list[Record]:
        """Records that hold a monotonic and a wall-clock time read together."""
        found = [r for kind in ("process", "clock", "close") for r in self.records.get(kind, [])]
        return [r for r in found if "t_ns" in r and "wall_ns" in r]


def is_run(path: Path) -> bool:
    """Whether a directory is a run directory: it says so, or holds a journal."""
    return path.is_dir() and ((path / "run.json").is_file() or bool(journal_files(path)))


def journal_files(path: Path) -> list[Path]:
    """The journals of a run directory, gzipped ones too, by name."""
    return sorted(file for pattern in JOURNALS for file in path.glob(pattern) if file.is_file())


def contents(path: Path) -> bytes:
    """Bytes of a file of a run, inflated where it was gzipped; what is lost of it shows as a cut last line or chunk.

    Raises:
        SourceError: it cannot be read.
    """
    return b"".join(Source(path, path.name).pieces())


def read_journal(path: Path) -> Journal:
    """Read the lines of one `process-*.jsonl`; a line that is cut or damaged is counted and left out."""
    journal = Journal(path)
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    for line in contents(path).split(b"\n"):
        if not line:
            continue
        try:
            _take(journal, decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, KeyError, ValueError):
            journal.cut_lines += 1
    return journal


def _take(journal: Journal, record: Record) -> None:
    kind = str(record["type"])
    checked(kind, record)
    if kind == "begin":
        known = {key: record[key] for key in ("id", "parent", "kind", "phase", "name", "tid", "request")}
        if record["id"] in journal.spans or record["parent"] >= record["id"]:  # ids count up: no span is its own parent
            raise ValueError("a span that begins twice, or before its parent")
        span = Span(**known, start=record["t_ns"], attrs=dict(record.get("attrs", {})))
        journal.spans[span.id] = span
    elif kind == "end":
        span = journal.spans[record["id"]]
        span.start = record.get("began_ns", span.start)
        span.end, span.ok, span.error = record["t_ns"], record["ok"], record.get("error")
        span.attrs |= record.get("attrs", {})
    else:
        journal.records.setdefault(kind, []).append(record)
    t_ns = record.get("t_ns", 0)
    journal.last_ns = max(journal.last_ns, t_ns if isinstance(t_ns, int) and t_ns < TIME_LIMIT else 0)


def read_launches(journal: Path) -> tuple[dict[str, np.ndarray], int]:
    """Launches beside a journal as columns (shape (launches,)), with `tid` added.

    Returns:
        The columns, and how many bytes were left out: of a cut last chunk, and of launches that cannot be.
    """
    names = [name for name, _ in _COLUMNS]
    plain = journal.with_name(journal.name.removesuffix(".gz").removesuffix(".jsonl") + ".launches")
    data = next((contents(file) for file in (plain, plain.with_name(plain.name + ".gz")) if file.exists()), b"")
    parts: list[list[np.ndarray]] = [[] for _ in (*names, "tid")]
    at = _HEADER if data.startswith(_MAGIC) else len(data)
    while at + _CHUNK.itemsize <= len(data):
        head = np.frombuffer(data, _CHUNK, 1, at)[0]
        n, body = int(head["n"]), at + _CHUNK.itemsize
        if head["magic"] != b"CHNK" or body + _LAUNCH_BYTES * n > len(data):
            break
        for i, (_, dtype) in enumerate(_COLUMNS):
            column = np.frombuffer(data, dtype, n, body)
            parts[i].append(column)
            body += column.nbytes
        parts[-1].append(np.full(n, head["tid"], np.int64))
        at = body
    joined = [np.concatenate(p).astype(np.int64) if p else np.zeros(0, np.int64) for p in parts]
    return _sound(dict(zip((*names, "tid"), joined, strict=True)), max(len(data) - at, 0))


def _sound(launches: dict[str, np.ndarray], cut: int) -> tuple[dict[str, np.ndarray], int]:
    """Launches without those whose times or ids cannot be, and the bytes that are lost."""
    good = within(launches["t_enter"]) & within(launches["t_exit"])
    for name in ("shape", "span", "request"):
        good &= launches[name] >= 0
    if good.all():
        return launches, cut
    return {name: column[good] for name, column in launches.items()}, cut + _LAUNCH_BYTES * int((~good).sum())
