"""What the recording itself cannot show: lost kernels, graphs that hide theirs, unexplained time, no requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.calls import GRAPH, LAUNCH, is_kind
from tprof.align.ranges import by_thread
from tprof.analyze.attribution import IDLE
from tprof.analyze.findings.facts import MATTERS, Facts, counted
from tprof.events import COLD_PHASES
from tprof.intervals import NONE, at, total, union
from tprof.model import ints

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.analyze.busy import Set
    from tprof.analyze.result import Row

_RECORD_ALL: Final = "record from before the first launch, flush before the end, and let only one tool record the GPU"
_RECORD_NODES: Final = "record again with `nsys profile --cuda-graph-trace=node`"


def missing(facts: Facts, kind: int) -> tuple[np.ndarray, int, int]:
    """Calls of a kind in the window that no device event belongs to: rows of `host`, their number, and that of all.

    A runtime call and the driver call inside it share a correlation id: one device event is enough for both. What is
    launched while a graph is captured does not run.
    """
    start, _ = facts.times("host")
    code, names = facts.labels("host", "name")
    runs = ~np.isin(code, [i for i, name in enumerate(names) if "HostFunc" in name])
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
    phase, phases = facts.labels("spans", "phase")
    capturing = phase == (phases.index("graph_capture") if "graph_capture" in phases else len(phases))
    start, end = (column[capturing] for column in facts.times("spans"))
    on = ints(facts.trace.spans, "thread")[capturing]
    called, thread = facts.times("host")[0][rows], ints(facts.trace.host, "thread")[rows]
    inside = np.zeros(len(rows), bool)
    for number, mine in by_thread(on):
        here = np.flatnonzero(thread == number)
        inside[here] = at(union(start[mine], end[mine]), called[here]) != NONE
    return inside


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


def lost_kernels(facts: Facts) -> list[Row]:
    """Launches without a device event."""
    return _lost(facts, LAUNCH, "lost-kernel-records", "launches", _RECORD_ALL)


def hidden_graphs(facts: Facts) -> list[Row]:
    """Graph launches whose kernels the capture does not show: of none of them, or only as a whole."""
    return _lost(facts, GRAPH, "hidden-graph-kernels", "graph launches", _RECORD_NODES) + [
        facts.finding(
            "hidden-graph-kernels",
            "graph launches are recorded as a whole, without their kernels",
            cost,
            "device's busy time",
            row["busy_ns"],
            why=f"{counted(number, 'execution')} on device {row['device']}: kernels and idle time within are not shown",
            fix=_RECORD_NODES,
            count=number,
        )
        for row, cost, number in opaque(facts)
    ]


def _lost(facts: Facts, kind: int, code: str, noun: str, fix: str) -> list[Row]:
    """Calls that left no device event; it costs what they make doubtful on the device that has most of it."""
    rows, lost, calls = missing(facts, kind)
    if lost <= MATTERS * calls or not facts.devices:
        return []
    costs = [(_in_gaps(facts, facts.numbers[row["device"]], rows), row) for row in facts.devices]
    cost, row = max(costs, key=lambda item: total(*item[0]))
    return [
        facts.finding(
            code,
            f"{lost:,} of {calls:,} {noun} left no record on the device",
            cost,
            "device's idle time",
            row["idle_ns"],
            why=f"device {row['device']} may have been busy in the gaps in which they began",
            fix=fix,
            basis="unattributed",
            count=lost,
        )
    ]


def opaque(facts: Facts) -> list[tuple[Row, Set, int]]:
    """Devices with executions of whole graphs: the row of `summary`, their instants, their number."""
    whole = is_kind(facts.trace.device, "graph")
    start, end = facts.times("device")
    found = []
    for row in facts.devices:
        rows = facts.attribution.events[facts.numbers[row["device"]]].row
        rows = rows[whole[rows] & (end[rows] > facts.window[0]) & (start[rows] < facts.window[1])]
        cost = facts.set_of(zip(start[rows].tolist(), end[rows].tolist(), strict=True))
        if len(rows) and total(*cost) > MATTERS * row["busy_ns"]:
            found.append((row, cost, len(rows)))
    return found


def unattributed(facts: Facts) -> list[Row]:
    """Idle time that the trace cannot explain, where it is the larger part."""
    return [
        facts.finding(
            "unattributed",
            f"idle time of device {row['device']} cannot be explained",
            row["idle_by_phase"]["unattributed"],
            "device's idle time",
            row["idle_ns"],
            why=f"{counted(row['unlinked'], 'device event')} have no recorded launch",
            fix="record the whole run, with host activity, from before the first launch",
            basis="unattributed",
        )
        for row in facts.devices
        if row["idle_by_phase"].get("unattributed", 0) > row["idle_ns"] / 2
    ]


def requests_unknown(facts: Facts) -> list[Row]:
    """Cold time in a trace without any range that is a request."""
    cold = sum(facts.cold[f"{phase}_ns"] for phase in COLD_PHASES)
    if facts.requests or cold < max(MATTERS * facts.wall_ns, 1):
        return []
    return [
        facts.finding(
            "requests-unknown",
            "no range of this trace is known to be a request",
            0,
            "window",
            facts.wall_ns,
            why="whether anyone waited for the cold start, and for how long, cannot be told",
            fix="name the ranges that are requests (`--range GLOB`), or record with `tprof.request(...)`",
            basis="unattributed",
        )
    ]


RULES: Final[tuple[Callable[[Facts], list[Row]], ...]] = (
    lost_kernels,
    hidden_graphs,
    unattributed,
    requests_unknown,
)
