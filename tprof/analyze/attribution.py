"""Whose time every nanosecond of a device was: busy by purpose, idle, lead and tail by phase.

The second half of DESIGN's rules: a gap ends in device event K, whose launch call ran during [c0, c1) on thread T.
Before c0 the gap is what T was doing; within the call it is launch, unless T was cold; after it, launch while the gap
had begun before the call was over, else turnaround or dependency. Done once on the whole trace; windows clip the
pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.calls import GRAPH
from tprof.align.ranges import by_thread, looked_up
from tprof.analyze.busy import busy_by_purpose, device_events, extent
from tprof.analyze.gaps import BUSY, EVER, IDLE, LEAD, TAIL, Gaps, find_gaps
from tprof.analyze.timeline import UNATTRIBUTED, Timelines, pack
from tprof.intervals import NONE
from tprof.model import distinct

if TYPE_CHECKING:
    from tprof.analyze.busy import DeviceEvents, Set
    from tprof.intervals import Steps
    from tprof.model import Trace

__all__ = ["BUSY", "IDLE", "LEAD", "TAIL", "WHERE", "Attribution", "Pieces"]
WHERE = ("busy", "idle", "lead", "tail")
LAUNCHING, TURNAROUND, DEPENDENCY, IN_GRAPH = (pack(p) for p in ("launch", "turnaround", "dependency", "graph"))
_BLOCK = 1 << 15  # gaps that are cut at once: what that needs stays in a processor's own cache
Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]  # start, end, value, row of the block's gaps (-1: busy)


@dataclass(frozen=True)
class Pieces:
    """A partition of all time as one device saw it; `bounds` has shape (pieces + 1,).

    `value` is an index into PURPOSES for busy pieces, else a packed phase; `gap` numbers the gap that a piece belongs
    to (-1: busy). Of each gap, `row` is the device event that ends it, `thread` the one that was waited for (-1: none).
    """

    bounds: np.ndarray
    where: np.ndarray
    value: np.ndarray
    gap: np.ndarray
    row: np.ndarray
    thread: np.ndarray

    @property
    def start(self) -> np.ndarray:
        """Begin of each piece, ns."""
        return self.bounds[:-1]

    @property
    def end(self) -> np.ndarray:
        """End of each piece, ns."""
        return self.bounds[1:]

    def clipped(self, low: int, high: int) -> np.ndarray:
        """Length of each piece inside a window, ns."""
        return np.diff(np.clip(self.bounds, low, max(low, high)))


class Attribution:
    """Pieces of every device of a trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.timelines = Timelines(trace)
        self.extent = extent(trace)
        self.events = {e.device: e for e in device_events(trace)}
        self._pieces: dict[int, Pieces] = {}

    @cached_property
    def busy(self) -> dict[int, list[Set]]:
        """Per device, the disjoint busy set of each purpose."""
        return {device: busy_by_purpose(events) for device, events in self.events.items()}

    def pieces(self, device: int) -> Pieces:
        """The partition of the whole trace for one device."""
        if device not in self._pieces:
            self._pieces[device] = self._partition(self.events[device])
        return self._pieces[device]

    def _partition(self, events: DeviceEvents) -> Pieces:
        gaps, busy, again = find_gaps(events, self.extent), self.busy[events.device], self._continues_graph(events)
        in_graph = (gaps.event != NONE) & again[gaps.event]
        thread = self._waited_for(events, gaps, in_graph)
        columns = self._room(gaps, busy, thread)
        done = 0
        for first in range(0, len(gaps.start), _BLOCK):
            rows = slice(first, first + _BLOCK)
            block = gaps.some(rows)
            until = gaps.start[first + _BLOCK] if first + _BLOCK < len(gaps.start) else EVER.max
            parts = [_busy_part(i, s, (block.start[0], until)) for i, s in enumerate(busy)]
            parts += self._idle_parts(events, block, thread[rows], in_graph[rows])
            found = _sorted(parts, block, first)
            for column, values in zip(columns, found, strict=True):
                column[done : done + len(values)] = values
            done += len(found[0])
        bounds, *others = columns
        bounds[done] = gaps.end[-1]
        where, value, gap = (column[:done] for column in others)
        return Pieces(bounds[: done + 1], where, value, gap, looked_up(events.row, gaps.event), thread)

    def _waited_for(self, events: DeviceEvents, gaps: Gaps, in_graph: np.ndarray) -> np.ndarray:
        """Thread that launched what ended each gap, -1 where none is known; int32 of shape (gaps,)."""
        linked = events.launch[events.launch != NONE]
        thread = looked_up(self.timelines.thread, looked_up(events.launch, gaps.event)).astype(np.int32)
        last = int(self.timelines.thread[linked[-1]]) if len(linked) else NONE
        thread[(gaps.where == TAIL) & (gaps.end < EVER.max)] = last
        thread[in_graph] = NONE
        return thread

    def _room(self, gaps: Gaps, busy: list[Set], thread: np.ndarray) -> tuple[np.ndarray, ...]:
        """Begin, where, value and gap of as many pieces as there can be; what is not used takes no memory."""
        changes = sum(len(self.timelines.of(on).value) for on in distinct(thread).tolist() if on != NONE)
        most = 4 * len(gaps.start) + sum(len(start) for start, _ in busy) + changes
        return tuple(np.empty(most + 1, kind) for kind in (np.int64, np.int8, np.int16, np.int32))

    def _idle_parts(self, events: DeviceEvents, gaps: Gaps, thread: np.ndarray, in_graph: np.ndarray) -> list[Part]:
        """Pieces of gaps, each by what the thread that it waited for was doing."""
        whole, waits = np.flatnonzero(thread == NONE), np.flatnonzero(thread != NONE)
        parts = [(gaps.start[whole], gaps.end[whole], np.where(in_graph, IN_GRAPH, UNATTRIBUTED)[whole], whole)]
        g0, g1, event = (column[waits] for column in (gaps.start, gaps.end, gaps.event))
        launch = looked_up(events.launch, event)
        called = np.clip(looked_up(self.timelines.start, launch, g1), g0, g1)
        returned = looked_up(self.timelines.end, launch, g1)
        over = np.clip(returned, called, g1)
        for on, at in by_thread(thread[waits]):
            parts.append(_cut(self.timelines.of(on), waits, at, g0, called, UNATTRIBUTED))
            if len((cold := self.timelines.cold(on)).value):
                parts.append(_cut(cold, waits, at, called, over, LAUNCHING))
            else:  # the call is all launch, as is what follows
                over[at] = called[at]
        idle = np.where(events.stream_idle_since[event] == g0, TURNAROUND, DEPENDENCY)
        first = gaps.where[waits] == LEAD  # which begins with the trace, so no call was over before it
        parts.append((over, g1, np.where((returned > g0) | first, LAUNCHING, idle), waits))
        return parts

    def _continues_graph(self, events: DeviceEvents) -> np.ndarray:
        """Events of a graph launch that has already put one on this device; shape (events,) bool."""
        linked = np.flatnonzero(events.launch != NONE)
        linked = linked[self.timelines.calls[events.launch[linked]] == GRAPH]
        again = np.zeros(len(events), bool)
        again[linked] = True
        again[linked[np.unique(events.launch[linked], return_index=True)[1]]] = False
        return again


def _cut(steps: Steps, rows: np.ndarray, at: np.ndarray, start: np.ndarray, end: np.ndarray, otherwise: int) -> Part:
    """Stretches of some of the rows, cut by what a thread was doing."""
    s, e, value, i = steps.over(start[at], end[at])
    return s, e, np.where(value == NONE, otherwise, value), rows[at[i]]


def _busy_part(purpose: int, busy: Set, window: tuple[int, int]) -> Part:
    """Pieces of one purpose that begin in a window."""
    start, end = (column[slice(*np.searchsorted(busy[0], window))] for column in busy)
    return start, end, np.full(len(start), purpose), np.full(len(start), NONE)


def _sorted(parts: list[Part], gaps: Gaps, first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Begin, where, value and number of the gap of the pieces in order of time; pieces alike are one."""
    start, end, value, row = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.flatnonzero(end > start)
    order = order[np.argsort(start[order], kind="stable")]
    value, row = value[order].astype(np.int16), row[order].astype(np.int32)
    new = np.append(True, (value[1:] != value[:-1]) | (row[1:] != row[:-1]))
    order, value, row = order[new], value[new], row[new]
    where = np.append(gaps.where, np.int8(BUSY))[row]
    return start[order], where, value, np.where(row == NONE, np.int32(NONE), row + np.int32(first))
