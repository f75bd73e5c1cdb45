"""Lanes of a timeline: per process its devices with their streams, its threads by phase, and their ranges by depth.

Every lane is disjoint: where intervals of a stream overlap, an instant belongs to the one that began last.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.calls import BOOKKEEPING, is_kind
from tprof.align.ranges import by_thread
from tprof.analyze.attribution import BUSY
from tprof.analyze.busy import event_purposes, stream_numbers
from tprof.analyze.devices import device_label, process_label, ranks_of
from tprof.analyze.lod import Blocks
from tprof.events import BASES, PHASES, PURPOSES
from tprof.intervals import NONE, innermost, parents
from tprof.model import codes, distinct, ints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tprof.analyze.attribution import Attribution
    from tprof.model import Trace

KINDS: Final = ("device", "stream", "thread", "ranges")
RANGE: Final = "range"
_DEPTH: Final = 4  # of nested ranges; deeper ones are in the details of an instant
# What an interval can be: a part of the wall clock as `segments` calls it, and its basis. Phases come first, packed as
# `timeline.pack` does, so that a thread's phases need no copy.
PARTS: Final[tuple[tuple[str, str], ...]] = (
    *((phase, basis) for phase in PHASES for basis in BASES),
    *((f"busy.{purpose}", basis) for purpose in PURPOSES for basis in BASES),
    (RANGE, "recorded"),
)
_BUSY: Final = len(PHASES) * len(BASES)
_POWERS: Final = 10 ** np.arange(1, 13)
_DECADES: Final = len(_POWERS) + 1


@dataclass(frozen=True, eq=False)
class Lane:
    """One line of the timeline.

    Attributes:
        kind: one of KINDS.
        group: the process, or the device, that it belongs to.
        label: what it is called within its group.
        of: row of `threads`, or of `devices`.
        start, end: ns; shape (intervals,), sorted and disjoint.
        value: index into PARTS; shape (intervals,).
        row: of `device` (a stream), of `host` (ranges), else None; shape (intervals,).
    """

    kind: str
    group: str
    label: str
    of: int
    start: np.ndarray
    end: np.ndarray
    value: np.ndarray
    row: np.ndarray | None = None

    @property
    def blocks(self) -> Blocks:
        """Its level of detail; what its codes stand for is in `codes`."""
        return self._coded[1]

    @property
    def codes(self) -> np.ndarray:
        """What there is in it: part and decade of the duration, as `part * 13 + decade`; shape (codes,)."""
        return self._coded[0]

    @cached_property
    def _coded(self) -> tuple[np.ndarray, Blocks]:
        decade = np.searchsorted(_POWERS, self.end - self.start, side="right").astype(np.int16)
        key = self.value.astype(np.int16) * _DECADES + decade
        codes = distinct(key).astype(np.int64)
        table = np.zeros(len(PARTS) * _DECADES, np.min_scalar_type(len(codes)))
        table[codes] = np.arange(len(codes))
        return codes, Blocks(self.start, self.end, table[key], len(codes))

    @property
    def parts(self) -> np.ndarray:
        """Part of each code."""
        return self.codes // _DECADES

    @property
    def least(self) -> np.ndarray:
        """Power of ten at or below the durations of each code, ns."""
        return 10 ** (self.codes % _DECADES)

    def only(self, keep: np.ndarray) -> Lane:
        """The same lane with fewer intervals."""
        row = None if self.row is None else self.row[keep]
        fewer = replace(self, start=self.start[keep], end=self.end[keep], value=self.value[keep], row=row)
        if "_coded" in vars(self):  # then the same codes serve, and need not be found again
            codes, blocks = self._coded
            vars(fewer)["_coded"] = codes, Blocks(fewer.start, fewer.end, blocks.code[keep], len(codes))
        return fewer


def lanes(attribution: Attribution) -> list[Lane]:
    """All lanes of a trace: of each device, then of each process its threads and their ranges; empty ones left out."""
    return [lane for lane in (*_devices(attribution), *_threads(attribution)) if len(lane.start)]


def _devices(attribution: Attribution) -> Iterator[Lane]:
    trace = attribution.trace
    number, keys = stream_numbers(trace)
    code, names = codes(trace.device, "purpose_basis")
    basis = np.array([*(BASES.index(name) for name in names), 0])[code]
    value = (_BUSY + event_purposes(trace) * len(BASES) + basis).astype(np.int16)
    for device, events in attribution.events.items():
        group = f"device {device_label(trace, device)}"
        pieces = attribution.pieces(device)
        inner = slice(1, len(pieces.start) - 1)  # without all the time before and after the trace
        busy = np.arange(_BUSY, _BUSY + len(PURPOSES) * len(BASES), len(BASES))
        np.maximum.at(busy, events.purpose, value[events.row])  # inferred where that holds for any event
        spent = np.where(pieces.where == BUSY, busy[pieces.value % len(PURPOSES)], pieces.value)[inner]
        what = "where its time went"
        yield Lane("device", group, what, device, pieces.start[inner], pieces.end[inner], spent.astype(np.int16))
        on = number[events.row]
        for stream in np.unique(on).tolist():
            mine = on == stream
            row = events.row if mine.all() else events.row[mine]
            start, end = (t if mine.all() else t[mine] for t in (events.start, events.end))
            pid, _, _, known = keys[stream]
            label = f"stream {known}" if len({key[0] for key in keys}) == 1 else f"stream {known} of process {pid}"
            yield _disjoint(Lane("stream", group, label, device, start, end, value[row], row))


def _threads(attribution: Attribution) -> Iterator[Lane]:
    trace = attribution.trace
    thread = ints(trace.host, "thread")
    groups, ranges, threads = _processes(trace), dict(_ranges(trace, thread)), trace.threads.to_pylist()
    alive = np.unique(thread[~is_kind(trace.host, *BOOKKEEPING)])  # a profiler's overhead has threads of its own
    for on in sorted(alive.tolist(), key=lambda on: groups.index(groups[on])):  # of a process side by side
        steps = attribution.timelines.of(on)
        label = threads[on]["name"] or f"thread {threads[on]['tid']}"
        lane = Lane("thread", groups[on], label, on, steps.bounds[:-1], steps.bounds[1:], steps.value)
        yield lane if (steps.value != NONE).all() else lane.only(steps.value != NONE)
        for depth, rows in enumerate(ranges.get(on, [])):
            start, end = (ints(trace.host, c)[rows] for c in ("start_ns", "end_ns"))
            value = np.full(len(rows), len(PARTS) - 1, np.int16)
            lane = Lane(
                "ranges",
                groups[on],
                f"{label}, ranges" + (f" {depth + 1}" if depth else ""),
                on,
                start,
                end,
                value,
                rows,
            )
            yield _disjoint(lane)


def _processes(trace: Trace) -> list[str]:
    """What the process of each thread is called; with its host where there are several."""
    known = ranks_of(trace)
    rows = trace.threads.to_pylist()
    hosts = len({row["host"] for row in rows}) > 1
    found = []
    for row in rows:
        name = process_label(row["pid"], known.get((row["host"], row["pid"])))
        found.append(f"{row['host']}: {name}" if hosts else name)
    return found


def _ranges(trace: Trace, thread: np.ndarray) -> Iterator[tuple[int, list[np.ndarray]]]:
    """Of each thread the rows of `host` that are ranges, by depth."""
    rows = np.flatnonzero(is_kind(trace.host, "range", "startend", "request"))
    start, end = (ints(trace.host, c)[rows] for c in ("start_ns", "end_ns"))
    for on, at in by_thread(thread[rows]):
        order = at[np.lexsort((-end[at], start[at]))]
        order = order[end[order] > start[order]]
        above = parents(start[order], end[order])
        levels: list[np.ndarray] = []
        level = np.flatnonzero(above == NONE)
        while len(level) and len(levels) < _DEPTH:
            levels.append(rows[order[level]])
            level = np.flatnonzero(np.isin(above, level))
        yield on, levels


def _disjoint(lane: Lane) -> Lane:
    """The lane without empty intervals; where some overlap, each instant is given to the one that began last."""
    solid = lane.end > lane.start
    lane = lane if solid.all() else lane.only(solid)
    if not (lane.end[:-1] > lane.start[1:]).any():
        return lane
    steps = innermost(lane.start, lane.end)
    mine = np.flatnonzero(steps.value != NONE)
    return replace(lane.only(steps.value[mine]), start=steps.bounds[mine], end=steps.bounds[mine + 1])
