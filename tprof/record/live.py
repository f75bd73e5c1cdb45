"""What a run is doing right now, from its journals: read while they are written, only what was added since."""

from __future__ import annotations

import gzip
import json
import os
import socket
import zlib
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tprof.record import clock
from tprof.record.journal import CHUNK_HEADER, FILE_HEADER, ROW_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedIOBase

Record = dict[str, Any]
FRESH_NS: Final = 3_000_000_000  # a process that wrote that recently is running: the writer says the time every second
USER_KINDS: Final = ("request", "serve", "range")
_CUT: Final = (EOFError, zlib.error)  # of a gzipped file that was not written or copied to its end
JOURNALS: Final = (".jsonl", ".jsonl.gz")  # ends of their names
COUNTS: Final = ("compiles", "disk_hits", "loads", "searches", "candidates", "failed", "launches")


@dataclass
class Open:
    """A cold span that has not ended."""

    record: Record
    children_ns: int = 0
    specialization: str = ""


@dataclass
class Process:
    """One journal, as far as it was read."""

    path: Path
    said: Record = field(default_factory=dict)  # its first line
    last_ns: int = 0
    closed: bool = False
    open: dict[int, Open] = field(default_factory=dict)  # span id -> span, in order of their begins
    requests: dict[int, Record] = field(default_factory=dict)
    threads: dict[int, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    phases_ns: Counter[str] = field(default_factory=Counter)  # time within a phase and nothing deeper
    notes: Counter[str] = field(default_factory=Counter)
    _at: int = 0
    _launches_at: int = FILE_HEADER.size

    @property
    def pid(self) -> int:
        """Process id, also where the first line is not there yet."""
        named = self.path.stem.split("-", 1)[-1].split(".", 1)[0]
        return int(self.said.get("pid") or (named if named.isdigit() else 0))

    def read(self) -> None:
        """Read what was added."""
        with _opened(self.path) as file, suppress(*_CUT):
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):  # still being written
                    break
                self._at += len(line)
                with suppress(ValueError, KeyError, TypeError, AttributeError):  # damaged: what can be read goes on
                    self._take(json.loads(line))
        self._count_launches()

    def _take(self, record: Record) -> None:
        kind = record.get("type")
        self.last_ns = max(self.last_ns, int(record.get("t_ns") or 0))
        if kind == "begin":
            self._begin(record)
        elif kind == "end":
            self._end(record)
        elif kind == "thread":
            self.threads[record.get("tid", 0)] = str(record.get("name"))
        elif kind == "process":
            self.said = record
        elif kind == "note":
            self.notes[str(record.get("code"))] += 1
        elif kind == "close":
            self.closed = True

    def _begin(self, record: Record) -> None:
        if record.get("kind") == "request":
            self.requests[record["id"]] = record
        elif record.get("kind") not in USER_KINDS:
            self.open[record["id"]] = Open(record)

    def _end(self, record: Record) -> None:
        self.requests.pop(record["id"], None)
        span = self.open.pop(record["id"], None)
        if span is None:
            return
        took = max(0, record["t_ns"] - span.record["t_ns"])
        self.phases_ns[str(span.record.get("phase"))] += max(0, took - span.children_ns)
        if parent := self.open.get(span.record.get("parent", 0)):
            parent.children_ns += took
        self._count(span.record, {**span.record.get("attrs", {}), **record.get("attrs", {})}, ok=record.get("ok", True))

    def _count(self, begun: Record, attrs: Record, *, ok: bool) -> None:
        """Add a span that ended to the counts."""
        kind = begun.get("kind")
        if kind == "jit" and not attrs.get("skipped"):
            self.counts["disk_hits" if attrs.get("cache_hit") else "compiles"] += 1
        elif kind == "load" and ok:
            self.counts["loads"] += 1
        elif kind == "autotune":
            self.counts["searches"] += 1
        elif kind == "candidate":
            self.counts["candidates"] += 1
            self.counts["failed"] += bool(attrs.get("failed")) or not ok

    def _count_launches(self) -> None:
        """Step through the chunks of the launch file, from header to header."""
        launches = self.path.with_name(self.path.name.replace(".jsonl", ".launches"))
        with suppress(OSError, *_CUT), _opened(launches) as file:
            while True:
                file.seek(self._launches_at)
                head = file.read(CHUNK_HEADER.size)
                if len(head) < CHUNK_HEADER.size or not head.startswith(b"CHNK"):
                    return
                rows = CHUNK_HEADER.unpack(head)[1]
                self.counts["launches"] += rows
                self._launches_at += CHUNK_HEADER.size + rows * ROW_BYTES

    def state(self, now_ns: int, host: str) -> str:
        """`ended`, `running`, `silent` (there, but not even the time was written lately) or `killed`; `unknown`."""
        if self.closed:
            return "ended"
        if self.said.get("host", host) != host:
            return "unknown"
        if not self._exists():
            return "killed"
        return "running" if now_ns - self.last_ns < FRESH_NS else "silent"

    def _exists(self) -> bool:
        """Whether the pid still belongs to the process that wrote (one that began later is another), seen from here."""
        try:
            said = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return False
        words = said.rpartition(")")[2].split()
        began_ns = int(words[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        return words[0] not in "ZX" and began_ns <= int(self.said.get("t_ns") or self.last_ns) + 1_000_000_000

    def doing(self, now_ns: int) -> Iterator[Record]:
        """Per thread, what is open: outermost to innermost, and for how long."""
        by_thread: dict[int, list[Record]] = {}
        for span in self.open.values():
            by_thread.setdefault(span.record.get("tid", 0), []).append(span.record)
        for tid, spans in by_thread.items():
            inner = spans[-1]
            served = self.requests.get(inner.get("request", 0), {})
            yield {
                "pid": self.pid, "tid": tid, "thread": self.threads.get(tid, ""), "phase": inner.get("phase"),
                "what": [{**_named(s), "for_ns": max(0, now_ns - s["t_ns"])} for s in spans],
                "for_ns": max(0, now_ns - inner["t_ns"]), "since_ns": max(0, now_ns - spans[0]["t_ns"]),
                "request": served.get("name"), "request_id": served.get("attrs", {}).get("request_id"),
            }  # fmt: skip


def _opened(path: Path) -> BufferedIOBase:
    """A file of a run, also of one that was put away gzipped."""
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _named(record: Record) -> Record:
    return {"kind": record.get("kind"), "name": record.get("name"), "detail": record.get("attrs", {}).get("text")}


class Watch:
    """A run directory that is being written.

    Args:
        directory: run directory.
        only: stem of the one process to look at; all if None.
    """

    def __init__(self, directory: Path, only: str | None = None) -> None:
        self.directory, self._only = directory, only
        self._processes: dict[Path, Process] = {}

    def look(self) -> Record:
        """What is going on now: `processes`, `now` (one row per busy thread), `done` (counts) and `phases_ns`."""
        found = (p for end in JOURNALS for p in self.directory.glob(f"{self._only or 'process-*'}{end}"))
        for path in sorted(found):
            self._processes.setdefault(path, Process(path)).read()
        now_ns, host = clock.now(), socket.gethostname()
        return _summed(list(self._processes.values()), now_ns, host)


def _summed(processes: list[Process], now_ns: int, host: str) -> Record:
    done: Counter[str] = Counter(dict.fromkeys(COUNTS, 0))
    phases: Counter[str] = Counter()
    notes: Counter[str] = Counter()
    rows, busy = [], []
    for process in processes:
        done.update(process.counts)
        phases.update(process.phases_ns)
        notes.update(process.notes)
        state = process.state(now_ns, host)
        said = process.said
        named = {"pid": process.pid, "program": said.get("program"), "rank": said.get("rank"), "state": state}
        rows.append({**named, "versions": said.get("versions", {}), **{name: process.counts[name] for name in COUNTS}})
        if state != "ended":  # a process that is gone was at this when it last wrote
            until = now_ns if state in {"running", "silent"} else process.last_ns
            busy += [{**row, "state": state} for row in process.doing(until)]
    busy.sort(key=lambda row: row["for_ns"], reverse=True)
    return {"processes": rows, "now": busy, "done": dict(done), "phases_ns": dict(phases), "notes": dict(notes)}
