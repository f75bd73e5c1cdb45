"""Start-up of each process until `tprof.ready()`: a partition of its time from the system's start of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.calls import is_kind
from tprof.analyze.rows import grouped
from tprof.analyze.timeline import HOST, UNATTRIBUTED
from tprof.events import BASES, COLD_PHASES, PHASES
from tprof.intervals import NONE, Steps, innermost
from tprof.model import codes, ints

if TYPE_CHECKING:
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.result import Row

_NAMES: Final = {"interpreter": "interpreter", "recorder": "tprof itself"}


def startup_rows(attribution: Attribution) -> list[Row]:
    """Per process that said that it is ready: what its time was spent on, in order of first occurrence.

    Returns:
        Rows of pid, at_ns (of the first stretch, from the process's start), part (an import, a named range, a phase of
        DESIGN 4), within (the named range around a phase), stretches, total_ns, of_startup_share, basis. The rows of a
        process sum to the time from its start to ready; without its start, from the begin of the recording.
    """
    rows = attribution.trace.startup.to_pylist()
    return [
        row
        for ready in rows
        if ready["kind"] == "ready" and ready["thread"] is not None
        for row in _process(
            attribution, ready, [r for r in rows if r["process"] == ready["process"] and r is not ready]
        )
    ]


def _process(attribution: Attribution, ready: Row, said: list[Row]) -> list[Row]:
    process = attribution.trace.processes.slice(ready["process"], 1).to_pylist()[0]
    begin = process["start_ns"]
    begin = min((r["start_ns"] for r in said), default=ready["start_ns"]) if begin is None else begin
    whole = ready["start_ns"] - begin
    pieces = _pieces(attribution, ready["thread"], (begin, ready["start_ns"]), said)
    return [
        {
            "pid": process["pid"],
            "at_ns": own[0]["start_ns"] - begin,
            "part": label[0],
            "within": label[1],
            "stretches": len(own),
            "total_ns": (ns := sum(piece["wall_ns"] for piece in own)),
            "basis": label[2],
            "of_startup_share": ns / max(whole, 1),
        }
        for label, own in grouped(pieces, "label").items()
    ]


def _pieces(attribution: Attribution, thread: int, window: tuple[int, int], said: list[Row]) -> list[Row]:
    """Rows of start_ns, wall_ns and label (part, within, basis) in time order."""
    names, start, end = _named(attribution, thread, said)
    doing = attribution.timelines.of(thread)
    begun = max((r["end_ns"] for r in said if r["kind"] == "recorder"), default=window[1])
    recorded = Steps(np.array([min(begun, window[1]), window[1]]), np.array([HOST]))
    known = Steps(doing.bounds, np.where(doing.value == UNATTRIBUTED, NONE, doing.value)).or_else(recorded)
    low, high, value, _ = known.over(*(np.array([edge]) for edge in window))
    s, e, owner, piece = innermost(start, end).over(low, high)
    return [
        {"start_ns": a, "wall_ns": b - a, "label": _label(v, names[o] if o != NONE else None)}
        for a, b, o, v in zip(s.tolist(), e.tolist(), owner.tolist(), value[piece].tolist(), strict=True)
    ]


def _named(attribution: Attribution, thread: int, said: list[Row]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names of what the process says that it did and of the ranges on the thread, with their begins and ends."""
    host = attribution.trace.host
    mine = np.flatnonzero((ints(host, "thread") == thread) & is_kind(host, "range", "startend"))
    code, labels = codes(host, "name")
    names = [_NAMES.get(r["kind"], f"import {r['name']}") for r in said] + [labels[c] for c in code[mine].tolist()]
    start, end = (np.array([r[c] for r in said], np.int64) for c in ("start_ns", "end_ns"))
    return names, np.append(start, ints(host, "start_ns")[mine]), np.append(end, ints(host, "end_ns")[mine])


def _label(value: int, name: str | None) -> tuple[str, str | None, str]:
    """(part, within, basis): a cold phase and what is around it; else what has a name; else the phase."""
    if value == NONE:
        return (name, None, "recorded") if name else ("unattributed", None, "unattributed")
    phase, basis = PHASES[value // len(BASES)], BASES[value % len(BASES)]
    return (phase, name, basis) if phase in COLD_PHASES or not name else (name, None, basis)
