"""Searches of an autotuner: which candidates were timed for which key, in what time."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tprof.analyze.rows import labelled, recorded_spans
from tprof.intervals import NONE
from tprof.model import Trace, ints

if TYPE_CHECKING:
    from tprof.analyze.result import Row

_MS = 1_000_000


@dataclass(frozen=True)
class Tuning:
    """One search.

    Attributes:
        kernel: what was tuned.
        start_ns, end_ns: the search, its compiles included.
        thread: row of `threads`.
        pid: of the process.
        candidates: rows of `candidates` in the order in which they were timed, with their number there as `row`, and
            `spread_ns` (from the 20th to the 80th percentile; None where it is not known).
        key: values of the key arguments by name; empty where nobody recorded them.
        types: the rest of the key: dtypes.
        request: row of `host` that it was done for, if any.
        basis: recorded or inferred.
    """

    kernel: str
    start_ns: int
    end_ns: int
    thread: int
    pid: int
    candidates: list[Row]
    key: dict[str, str] = field(default_factory=dict)
    types: tuple[str, ...] = ()
    request: int | None = None
    basis: str = "recorded"

    @property
    def wall_ns(self) -> int:
        """From its begin to its end."""
        return self.end_ns - self.start_ns

    @property
    def key_text(self) -> str | None:
        """`M=512 N=1024`; None where the key is not known."""
        return " ".join(f"{name}={value}" for name, value in self.key.items()) or None


def tunings(trace: Trace, window: tuple[int, int]) -> list[Tuning]:
    """Searches that end inside the window, in time order; those of a recorder first found by their own span."""
    spans = recorded_spans(trace, "autotune", "candidate")
    rows = _candidates(trace, [s for s in spans if s["kind"] == "candidate"])
    found = [_told(span, rows) for span in spans if span["kind"] == "autotune"]
    taken = {id(c) for t in found for c in t.candidates}
    found += _runs(trace, [row for row in rows if id(row) not in taken])
    inside = [t for t in found if t.candidates and window[0] < t.end_ns <= window[1]]
    return sorted(inside, key=lambda t: t.start_ns)


def growing(searches: list[Tuning]) -> tuple[str, list[Tuning]]:
    """The key argument with most values while the rest of the key stayed the same, and the first search for each.

    Args:
        searches: of one kernel, in time order.

    Returns:
        Its name and the searches; empty where no key with numbers is known.
    """
    groups: dict[tuple[object, ...], dict[str, Tuning]] = defaultdict(dict)
    for t in searches:
        for name, value in t.key.items():
            if value.lstrip("-").isdigit():
                rest = tuple(item for item in t.key.items() if item[0] != name)
                groups[name, t.pid, rest, t.types].setdefault(value, t)
    largest = max(groups, key=lambda key: len(groups[key]), default=("",))
    return str(largest[0]), list(groups[largest].values())


def _candidates(trace: Trace, spans: list[Row]) -> list[Row]:
    """Rows of `candidates` by begin, with their spread where a recorder knows it."""
    told = {(s["thread"], s["start_ns"]): s["attrs"].get("timings_ms") for s in spans}
    rows = [{"row": i, **row} for i, row in enumerate(trace.candidates.to_pylist())]
    rows.sort(key=lambda row: row["start_ns"])
    return [{**row, "spread_ns": _spread(told.get((row["thread"], row["start_ns"])))} for row in rows]


def _spread(timings: list[float | None] | None) -> int | None:
    """What lies between the 20th and the 80th percentile of [median, p20, p80] ms; null stands for infinity."""
    low, high = timings[1:] if timings and len(timings) == 3 else (None, None)
    return None if low is None or high is None else round((high - low) * _MS)


def _told(span: Row, rows: list[Row]) -> Tuning:
    """A search that the recorder saw, with the candidates inside it."""
    attrs = span["attrs"]
    names, values = attrs.get("key_names") or [], attrs.get("key") or []
    inside = [
        row
        for row in rows
        if row["thread"] == span["thread"] and span["start_ns"] <= row["start_ns"] and row["end_ns"] <= span["end_ns"]
    ]
    place: dict[str, Any] = {k: span[k] for k in ("start_ns", "end_ns", "thread", "pid", "request")}
    key = dict(zip(names, values, strict=False))
    return Tuning(span["name"], candidates=inside, key=key, types=tuple(values[len(key) :]), **place)


def _runs(trace: Trace, rows: list[Row]) -> list[Tuning]:
    """Searches as runs of candidates of one kernel on one thread, cut where the kernel was launched as work.

    One candidate alone is no search: a library's kernel that a graph compiler compared with others.
    """
    runs: dict[tuple[int, str, int], list[Row]] = {}
    worked: dict[str, np.ndarray] = {}
    for row in rows:
        name = row["kernel"]
        if name not in worked:
            worked[name] = _work_launches(trace, name)
        turn = int(np.searchsorted(worked[name], row["start_ns"]))
        runs.setdefault((row["thread"], name, turn), []).append(row)
    pids = trace.threads["pid"].to_pylist()
    return [
        Tuning(name, run[0]["start_ns"], max(r["end_ns"] for r in run), thread, pids[thread], run, basis="inferred")
        for (thread, name, _), run in runs.items()
        if len(run) > 1
    ]


def _work_launches(trace: Trace, kernel: str) -> np.ndarray:
    """When a kernel was launched as work, sorted."""
    device, launch = trace.device, ints(trace.device, "launch")
    ran = labelled(device, "name", {kernel}) & labelled(device, "purpose", {"work"}) & (launch != NONE)
    return np.sort(ints(trace.host, "start_ns")[launch[ran]])
