"""A tprof run directory (docs/run-directory.md) to one `Trace` per process, on the monotonic clock of its host."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tprof.errors import SourceError
from tprof.events import Note
from tprof.model import Trace, table
from tprof.read.run_journal import Journal, journal_files, read_journal, read_launches
from tprof.read.run_records import checked
from tprof.read.run_tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FORMAT_VERSION: Final = 1
COMPANIONS: Final = (
    ".torch.json.gz",
    ".torch.json",
    ".sqlite",
    ".sqlite.gz",
)  # what other profilers wrote into the run


def read_run(path: Path, source: str, progress: Callable[[int, int], None] | None = None) -> list[Trace]:
    """Read every process of a run directory, oldest first.

    Args:
        path: the directory.
        source: how notes and errors call it.
        progress: called with (journals read, journals).

    Raises:
        SourceError: the directory cannot be read, or no process wrote anything.
    """
    said = _run_json(path, source)
    found = journal_files(path)
    journals = []
    for i, file in enumerate(found):
        journals.append(read_journal(file))
        if progress:
            progress(i + 1, len(found))
    journals = [j for j in journals if j.records or j.spans]
    if not journals:
        raise SourceError(source, "is a run directory without any recorded process; was `tprof.trace` entered?")
    journals.sort(key=lambda j: min((p["t_ns"] for p in j.clock_pairs), default=0))
    epochs = _epochs(said, journals)
    return [_trace(j, said, source, epochs[j.process.get("host", "")]) for j in journals]


def companions(path: Path) -> list[Path]:
    """Traces that other profilers wrote into the run directory."""
    return sorted(p for p in path.iterdir() if p.name.endswith(COMPANIONS) and p.is_file())


def _run_json(path: Path, source: str) -> dict[str, Any]:
    try:
        if not (path / "run.json").is_file():
            return {}
        said = msgspec.json.decode((path / "run.json").read_bytes(), type=dict[str, Any])
        version = said.get("format_version")
        if isinstance(version, int) and version > FORMAT_VERSION:
            raise SourceError(source, f"has run format {version}, this tprof reads {FORMAT_VERSION}; update tprof")
        checked("run", said)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SourceError(source, f"cannot be read ({error.strerror}); check its permissions") from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return said


def _epochs(said: dict[str, Any], journals: list[Journal]) -> dict[str, tuple[int, int]]:
    """Per host, UTC of the monotonic zero and its error, ns: one pair for all, since they share that clock."""
    pairs = [{**p, "host": j.process.get("host", "")} for j in journals for p in j.clock_pairs]
    if "created" in said:
        pairs.append({**said["created"], "host": said.get("host", "")})
    best: dict[str, tuple[int, int]] = {}
    for pair in sorted(pairs, key=lambda p: p.get("error_ns", 0), reverse=True):
        best[pair["host"]] = (pair["wall_ns"] - pair["t_ns"], pair.get("error_ns", 0))
    return {j.process.get("host", ""): best.get(j.process.get("host", ""), (0, 0)) for j in journals}


def _trace(journal: Journal, said: dict[str, Any], source: str, epoch: tuple[int, int]) -> Trace:
    launches, cut = read_launches(journal.path)
    tables = Tables(journal, launches)
    process = journal.process
    host = tables.host()
    name = f"{source}/{journal.path.name.partition('.jsonl')[0]}"
    return Trace(
        host=host,
        device=table("device"),
        processes=_processes(journal, said),
        threads=tables.threads(),
        devices=table("devices"),
        sources=_sources(name, process, host.num_rows, journal.cut_lines, epoch[0]),
        **tables.cold(),
        shape_keys=tables.shapes(),
        epoch_ns=epoch[0],
        epoch_error_ns=epoch[1],
        notes=_notes(journal, tables, cut, name),
        meta=_meta(journal, said),
    )


def _meta(journal: Journal, said: dict[str, Any]) -> dict[str, object]:
    """Versions, settings, and the GPUs under the names that every reader gives them."""
    seen = [d for record in journal.records.get("devices", [])[:1] for d in record.get("devices", [])]
    gpus = [
        {"name": d.get("name"), "major": d["capability"] // 10, "minor": d["capability"] % 10}
        for d in seen
        if d.get("capability")
    ]
    return {
        "versions": journal.process.get("versions", said.get("versions", {})),
        "settings": said.get("settings", {}),
        "gpus": gpus,
    }


def _processes(journal: Journal, run: dict[str, Any]) -> Any:
    said = journal.process
    columns = {
        "host": said.get("host", ""),
        "pid": journal.pid,
        "name": said.get("program"),
        "rank": said.get("rank"),
        "parent_pid": said.get("worker_of") or said.get("ppid"),
        "start_ns": said.get("started_ns"),
        "versions": json.dumps(said.get("versions", {})),
        "environment": json.dumps(run.get("environment", {})),
    }
    return table("processes", columns, 1)


def _sources(name: str, process: dict[str, Any], rows: int, cut: int, epoch: int) -> Any:
    columns = {
        "path": name,
        "format": "tprof",
        "producer": "tprof",
        "version": process.get("versions", {}).get("tprof"),
        "rows_read": rows,
        "rows_dropped": cut,
        "rows_skipped": json.dumps({}),
        "epoch_ns": epoch,
    }
    return table("sources", columns, 1)


def _notes(journal: Journal, tables: Tables, cut_bytes: int, name: str) -> tuple[Note, ...]:
    """What was lost, what was still open at the end, and what the recorder itself had to say."""
    found = []
    if journal.cut_lines:
        found.append(
            Note("cut-journal", "lines of the journal are cut or damaged and were left out", journal.cut_lines, name)
        )
    if cut_bytes:
        found.append(Note("cut-launches", f"{cut_bytes} bytes of a cut chunk of launches were left out", 1, name))
    for span in tables.unfinished():
        message = f"{span.kind} {span.name} had not ended: the process was killed in it, or is still at it"
        found.append(Note("unfinished-span", message, 1, name))
    if tables.failed_launches:
        found.append(Note("failed-launches", "launches failed on the way to the driver", tables.failed_launches, name))
    said = journal.records.get("note", [])
    found += [Note(str(record.get("code")), str(record.get("message")), 1, name) for record in said]
    for close in journal.records.get("close", []):
        lost = close.get("lost", {})
        if sum(lost.values()):
            found.append(Note("lost-records", f"the recorder could not write {lost}", sum(lost.values()), name))
    return tuple(found)
