"""What the recording itself cannot show: lost kernels, graphs that hide theirs, unexplained time, no requests.

And what it shows wrongly: devices that look idle throughout, or never.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.calls import GRAPH, LAUNCH, is_kind
from tprof.align.ranges import open_at
from tprof.analyze.attribution import IDLE
from tprof.analyze.findings.facts import MATTERS, Facts, counted
from tprof.analyze.rows import labelled
from tprof.events import COLD_PHASES
from tprof.intervals import NONE, at, total
from tprof.model import ints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tprof.analyze.busy import Set
    from tprof.analyze.result import Row

_FULL: Final = 0.99  # of a device's span: it looks idle throughout
_NEVER: Final = 0.001  # of a device's span: it looks busy throughout
_MANY: Final = 0.1  # of all launches: enough lost ones to doubt an idle device
_MOST: Final = 0.5  # of busy time, or of all events
_RECORD_ALL: Final = "record from before the first launch, flush before the end, and let only one tool record the GPU"
_RECORD_NODES: Final = "record again with `nsys profile --cuda-graph-trace=node`"
_RECORD_AGAIN: Final = f"{_RECORD_NODES}, from before the first launch, one tool at a time"
# Cold time of a kind that this recording knows too little of: title, why that matters, what to do.
_NOT_RECORDED: Final = {
    "cache-unknown": (
        "look-ups in the disk cache are not recorded",
        "whether kernels were compiled or found on disk cannot be told from this file",
        "record with `tprof record` (or `tprof.trace()`): it writes every look-up with its result",
    ),
    "tuning-key-unknown": (
        "autotune keys are not recorded",
        "whether a search was repeated, or a key grows with the requests, cannot be told from this file",
        "record with `tprof record` (or `tprof.trace()`): it writes each search with its key and its winner",
    ),
    "requests-unknown": (
        "no range of this trace is known to be a request",
        "whether anyone waited for the cold start, and for how long, cannot be told",
        "name the ranges that are requests (`--range GLOB`), or record with `tprof.request(...)`",
    ),
}


def missing(facts: Facts, kind: int) -> tuple[np.ndarray, int, int]:
    """Calls of a kind in the window that no device event belongs to: rows of `host`, their number, and that of all.

    A runtime call and the driver call inside it share a correlation id: one device event is enough for both. What is
    launched while a graph is captured does not run.
    """
    start, _ = facts.times("host")
    runs = ~labelled(facts.trace.host, "name", lambda name: "HostFunc" in name)
    rows = np.flatnonzero((facts.calls == kind) & runs & (start >= facts.window[0]) & (start < facts.window[1]))
    rows = rows[~_captured(facts, rows)]
    number = _identity(facts, "host")[rows]
    seen = np.isin(number, _identity(facts, "device")) | np.isin(rows, ints(facts.trace.device, "launch"))
    return rows[~seen], len(np.unique(number[~seen])), len(np.unique(number))


def _identity(facts: Facts, table: str) -> np.ndarray:
    """Process and correlation as one number."""
    data = getattr(facts.trace, table)
    return ints(data, "pid") * (1 << 40) + ints(data, "correlation")


def _captured(facts: Facts, rows: np.ndarray) -> np.ndarray:
    """Whether each host row lies in a capture on its thread."""
    host, spans = facts.trace.host, facts.trace.spans
    capturing = np.flatnonzero(labelled(spans, "phase", {"graph_capture"}))
    return open_at(spans, capturing, ints(host, "start_ns")[rows], ints(host, "thread")[rows]) != NONE


def _in_gaps(facts: Facts, device: int, rows: np.ndarray) -> Set:
    """Idle gaps of a device in which one of these calls of its process began: the device may have been busy."""
    pieces = facts.attribution.pieces(device)
    of = facts.attribution.events[device].row
    pids = np.unique(ints(facts.trace.device, "pid")[of])
    called = facts.times("host")[0][rows[np.isin(ints(facts.trace.host, "pid")[rows], pids)]]
    idle = np.flatnonzero((pieces.where == IDLE) & (pieces.clipped(*facts.window) > 0))
    holds = at((pieces.start[idle], pieces.end[idle]), called)
    gaps = np.unique(pieces.gap[idle[holds[holds != NONE]]])
    chosen = idle[np.isin(pieces.gap[idle], gaps)]
    return facts.set_of(zip(pieces.start[chosen].tolist(), pieces.end[chosen].tolist(), strict=True))


def lost_kernels(facts: Facts) -> Iterator[Row]:
    """Launches without a device event."""
    yield from _lost(facts, LAUNCH, "lost-kernel-records", "launches", _RECORD_ALL)


def hidden_graphs(facts: Facts) -> Iterator[Row]:
    """Graph launches whose kernels the capture does not show: of none of them, or only as a whole."""
    yield from _lost(facts, GRAPH, "hidden-graph-kernels", "graph launches", _RECORD_NODES)
    for row in facts.devices:
        cost, number = _opaque(facts, row)
        if total(*cost) > MATTERS * row["busy_ns"]:
            what = f"{counted(number, 'execution')} on device {row['device']}"
            yield facts.finding(
                "hidden-graph-kernels",
                "graph launches are recorded as a whole, without their kernels",
                cost,
                of=("device's busy time", row["busy_ns"]),
                why=f"{what}: kernels and idle time within are not shown",
                fix=_RECORD_NODES,
                count=number,
            )


def _lost(facts: Facts, kind: int, code: str, noun: str, fix: str) -> Iterator[Row]:
    """Calls that left no device event; it costs what they make doubtful on the device that has most of it."""
    rows, lost, calls = missing(facts, kind)
    if lost <= MATTERS * calls or not facts.devices:
        return
    costs = [(_in_gaps(facts, facts.numbers[row["device"]], rows), row) for row in facts.devices]
    cost, row = max(costs, key=lambda item: total(*item[0]))
    yield facts.finding(
        code,
        f"{lost:,} of {calls:,} {noun} left no record on the device",
        cost,
        of=("device's idle time", row["idle_ns"]),
        why=f"device {row['device']} may have been busy in the gaps in which they began",
        fix=fix,
        basis="unattributed",
        count=lost,
    )


def _opaque(facts: Facts, row: Row) -> tuple[Set, int]:
    """Executions of whole graphs on a device: their instants, and their number."""
    start, end = facts.times("device")
    rows = facts.attribution.events[facts.numbers[row["device"]]].row
    whole = is_kind(facts.trace.device, "graph")[rows]
    rows = rows[whole & (end[rows] > facts.window[0]) & (start[rows] < facts.window[1])]
    return facts.set_of(zip(start[rows].tolist(), end[rows].tolist(), strict=True)), len(rows)


def unattributed(facts: Facts) -> Iterator[Row]:
    """Idle time that the trace cannot explain, where it is the larger part."""
    for row in facts.devices:
        if (cost := row["idle_by_phase"].get("unattributed", 0)) > row["idle_ns"] / 2:
            yield facts.finding(
                "unattributed",
                f"idle time of device {row['device']} cannot be explained",
                cost,
                of=("device's idle time", row["idle_ns"]),
                why=f"{counted(row['unlinked'], 'device event')} have no recorded launch",
                fix="record the whole run, with host activity, from before the first launch",
                basis="unattributed",
            )


def not_recorded(facts: Facts) -> Iterator[Row]:
    """Look-ups, autotune keys or requests that the trace does not show, where what was cold is worth asking."""
    cold, keys = facts.cold, [bool(t.key) for t in facts.tunings]
    spent = {
        "cache-unknown": cold["compile_ns"] if cold["disk_hits"] is None else 0,
        "tuning-key-unknown": cold["autotune_ns"] if keys and not any(keys) else 0,
        "requests-unknown": 0 if facts.requests else sum(cold[f"{phase}_ns"] for phase in COLD_PHASES),
    }
    for code, ns in spent.items():
        if ns >= max(MATTERS * facts.wall_ns, 1):
            title, why, fix = _NOT_RECORDED[code]
            yield facts.finding(code, title, 0, why=why, fix=fix, basis="unattributed")


def artefacts(facts: Facts) -> Iterator[Row]:
    """Devices that look idle throughout, or never, because of how they were recorded."""
    for row in facts.devices:
        for said, why in doubts(facts, row):
            title, of = f"device {row['device']} looks {said} % idle, which is an artefact", row["span_ns"]
            yield facts.finding(
                "idle-artefact", title, 0, of=("device's span", of), why=why, fix=_RECORD_AGAIN, basis="unattributed"
            )


def doubts(facts: Facts, row: Row) -> Iterator[tuple[str, str]]:
    """How idle a device looks although it was not, and why: `100` % or `0` %."""
    if row["idle_ns"] >= _FULL * row["span_ns"] > 0:
        (_, lost, launches), (_, graphs, replays) = missing(facts, LAUNCH), missing(facts, GRAPH)
        if lost + graphs > _MANY * (launches + replays):
            of_graphs = f" and {graphs:,} of {replays:,} graph launches" if replays else ""
            yield "100", f"{lost:,} of {launches:,} launches{of_graphs} left no record on any device"
    if row["idle_ns"] <= _NEVER * row["span_ns"]:
        if total(*_opaque(facts, row)[0]) > _MOST * row["busy_ns"]:
            yield "0", "whole graph executions count as busy, with all gaps inside"
        elif row["overlaps"] > _MOST * row["events"]:
            cannot = "run into the next one of their stream, which cannot be: do not trust their durations"
            yield "0", f"{row['overlaps']:,} of {row['events']:,} events {cannot}"
