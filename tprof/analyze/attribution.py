"""Whose time every nanosecond of a device was: busy by purpose, idle, lead and tail by phase.

The second half of DESIGN's rules: a gap ends in device event K, whose launch call ran during [c0, c1) on thread T.
Before c0 the gap is what T was doing; within the call it is launch, unless T was cold; after it, launch while the gap
had begun before the call was over, else turnaround or dependency. Done once on the whole trace; windows clip the
pieces.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tprof.align.calls import GRAPH, call_classes
from tprof.align.ranges import by_thread
from tprof.analyze.busy import DeviceEvents, busy_by_purpose, device_events, extent
from tprof.analyze.timeline import UNATTRIBUTED, Timelines, pack
from tprof.intervals import NONE, Steps, union
from tprof.model import Trace, ints

BUSY, IDLE, LEAD, TAIL = range(4)
WHERE = ("busy", "idle", "lead", "tail")
LAUNCHING, TURNAROUND, DEPENDENCY, IN_GRAPH = (pack(p) for p in ("launch", "turnaround", "dependency", "graph"))


@dataclass(frozen=True)
class Pieces:
    """A partition of all time as one device saw it; arrays of shape (pieces,).

    `value` is an index into PURPOSES for busy pieces, else a packed phase; `gap` numbers the gap that a piece belongs
    to (-1: busy), `row` is the device event that ends it (-1: none).
    """

    start: np.ndarray
    end: np.ndarray
    where: np.ndarray
    value: np.ndarray
    gap: np.ndarray
    row: np.ndarray
    thread: np.ndarray

    def clipped(self, low: int, high: int) -> np.ndarray:
        """Length of each piece inside a window, ns."""
        return np.maximum(np.minimum(self.end, high) - np.maximum(self.start, low), 0)


@dataclass(frozen=True)
class _Gaps:
    """Idle stretches of a device and the event that ends each, as an index into its events (-1: the tail)."""

    start: np.ndarray
    end: np.ndarray
    where: np.ndarray
    event: np.ndarray


class Attribution:
    """Pieces of every device of a trace."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.timelines = Timelines(trace)
        self.extent = extent(trace)
        self.events = {e.device: e for e in device_events(trace)}
        self._start, self._end, self._thread = (ints(trace.host, c) for c in ("start_ns", "end_ns", "thread"))
        self._pieces: dict[int, Pieces] = {}

    @cached_property
    def _graph_call(self) -> np.ndarray:
        return call_classes(self.trace.host) == GRAPH

    @cached_property
    def busy(self) -> dict[int, list[tuple[np.ndarray, np.ndarray]]]:
        """Per device, the disjoint busy set of each purpose."""
        return {device: busy_by_purpose(events) for device, events in self.events.items()}

    def pieces(self, device: int) -> Pieces:
        """The partition of the whole trace for one device."""
        if device not in self._pieces:
            self._pieces[device] = self._partition(self.events[device])
        return self._pieces[device]

    def _partition(self, events: DeviceEvents) -> Pieces:
        parts = [_busy_part(i, s) for i, s in enumerate(self.busy[events.device])]
        gaps = self._gaps(events)
        parts += [*self._idle_parts(events, gaps), *self._outside(len(gaps.start))]
        columns = [np.concatenate(c) for c in zip(*map(_solid, parts), strict=True)]
        order = np.argsort(columns[0], kind="stable")
        return Pieces(*(column[order] for column in columns))

    def _outside(self, number: int) -> list[tuple[np.ndarray, ...]]:
        """The time before and after everything that was recorded, as two gaps: a window may reach there."""
        ever = np.iinfo(np.int64)
        edges = ((LEAD, ever.min, self.extent[0]), (TAIL, self.extent[1], ever.max))
        return [
            tuple(np.array([v]) for v in (start, end, where, UNATTRIBUTED, number + i, NONE, NONE))
            for i, (where, start, end) in enumerate(edges)
        ]

    def _gaps(self, events: DeviceEvents) -> _Gaps:
        """Lead, every hole in the union of the streams, tail."""
        first, last = int(events.start.min()), int(events.end.max())
        s, e = union(events.start, events.end)
        begin = np.concatenate([[self.extent[0], first], e])
        finish = np.concatenate([[first], s, [last]])
        begin, finish = np.append(begin, last), np.append(finish, self.extent[1])
        where = np.full(len(begin), IDLE)
        where[0], where[-1] = LEAD, TAIL
        solid = finish > begin
        event = np.searchsorted(events.start, finish, side="left")
        event = np.where(where == TAIL, NONE, np.minimum(event, len(events) - 1))
        return _Gaps(begin[solid], finish[solid], where[solid], event[solid])

    def _idle_parts(self, events: DeviceEvents, gaps: _Gaps) -> list[tuple[np.ndarray, ...]]:
        number = np.arange(len(gaps.start))
        launch = np.where(gaps.event == NONE, NONE, events.launch[gaps.event])
        in_graph = self._continues_graph(events, gaps, launch)
        tail = gaps.where == TAIL
        unlinked = (launch == NONE) & ~tail
        linked = (launch != NONE) & ~in_graph
        thread = np.where(linked, self._thread[launch] if len(self._thread) else NONE, NONE)
        thread[tail] = self._last_thread(events)

        def part(which: np.ndarray, start: np.ndarray, end: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, ...]:
            row = np.where(gaps.event[which] == NONE, NONE, events.row[gaps.event[which]])
            return start, end, gaps.where[which], value, which, row, thread[which]

        def whole(which: np.ndarray, value: int) -> tuple[np.ndarray, ...]:
            return part(which, gaps.start[which], gaps.end[which], np.full(len(which), value))

        parts = [whole(number[in_graph], IN_GRAPH), whole(number[unlinked | (tail & (thread == NONE))], UNATTRIBUTED)]
        waits = number[linked]
        called, returned = self._start[launch[waits]], self._end[launch[waits]]
        g0, g1 = gaps.start[waits], gaps.end[waits]
        before_end = np.clip(called, g0, g1)
        call_end = np.clip(returned, before_end, g1)
        parts += [part(w, s, e, v) for w, s, e, v in self._doing(waits, g0, before_end, thread)]
        parts += [part(w, s, e, v) for w, s, e, v in self._calling(waits, before_end, call_end, thread)]
        after = np.where(
            returned > g0,
            LAUNCHING,
            np.where(self._back_to_back(events, gaps.event[waits], g0), TURNAROUND, DEPENDENCY),
        )
        parts.append(part(waits, call_end, g1, after))
        rest = number[tail & (thread != NONE)]
        parts += [part(w, s, e, v) for w, s, e, v in self._doing(rest, gaps.start[rest], gaps.end[rest], thread)]
        return parts

    def _doing(
        self, which: np.ndarray, start: np.ndarray, end: np.ndarray, thread: np.ndarray
    ) -> list[tuple[np.ndarray, ...]]:
        """Stretches cut by what their thread was doing."""
        found: list[tuple[np.ndarray, ...]] = []
        for on, at in by_thread(thread[which]):
            s, e, value, i = self.timelines.of(on).over(start[at], end[at])
            found.append((which[at][i], s, e, np.where(value == NONE, UNATTRIBUTED, value)))
        return found

    def _calling(
        self, which: np.ndarray, start: np.ndarray, end: np.ndarray, thread: np.ndarray
    ) -> list[tuple[np.ndarray, ...]]:
        """Stretches inside a launch call: launch, unless the thread was cold."""
        found: list[tuple[np.ndarray, ...]] = []
        for on, at in by_thread(thread[which]):
            cold: Steps = self.timelines.cold(on)
            s, e, value, i = cold.over(start[at], end[at])
            found.append((which[at][i], s, e, np.where(value == NONE, LAUNCHING, value)))
        return found

    def _continues_graph(self, events: DeviceEvents, gaps: _Gaps, launch: np.ndarray) -> np.ndarray:
        """Gaps that end in a later event of a graph launch that has already put one on this device."""
        graph = (launch != NONE) & (self._graph_call[launch] if len(self._graph_call) else False)
        if not graph.any():
            return graph
        first = np.full(self.trace.host.num_rows, len(events))
        linked = np.flatnonzero(events.launch != NONE)
        np.minimum.at(first, events.launch[linked], linked)
        return graph & (gaps.event > first[launch])

    def _last_thread(self, events: DeviceEvents) -> int:
        """Thread of the device's last launch, -1 where none is linked."""
        linked = events.launch[events.launch != NONE]
        return int(self._thread[linked[-1]]) if len(linked) else NONE

    def _back_to_back(self, events: DeviceEvents, event: np.ndarray, instant: np.ndarray) -> np.ndarray:
        """Whether the event before each on its own stream ended at the given instant."""
        order = np.argsort(events.stream, kind="stable")
        previous = np.full(len(events), NONE)
        same = events.stream[order[1:]] == events.stream[order[:-1]]
        previous[order[1:][same]] = order[:-1][same]
        before = previous[event]
        return (before != NONE) & (events.end[before] == instant)


_DTYPES = (np.int64, np.int64, np.int8, np.int32, np.int32, np.int32, np.int32)  # of a part; no wider than need be


def _solid(part: tuple[np.ndarray, ...]) -> list[np.ndarray]:
    """The stretches of a part that are not empty, of which there may be few."""
    rows = np.flatnonzero(part[1] > part[0])
    return [column[rows].astype(kind, copy=False) for column, kind in zip(part, _DTYPES, strict=True)]


def _busy_part(purpose: int, busy: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, ...]:
    n = len(busy[0])
    none = np.full(n, NONE)
    return busy[0], busy[1], np.full(n, BUSY), np.full(n, purpose), none, none, none
