"""What a window of the timeline shows: which lanes, their share of each pixel by part, and their longest intervals."""

from __future__ import annotations

from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.captures import asked_by
from tprof.align.ranges import looked_up, match_ranges
from tprof.analyze.lanes import PARTS, RANGE, Lane
from tprof.analyze.lod import pixels
from tprof.analyze.rows import labelled
from tprof.intervals import NONE, at, union
from tprof.model import Trace, distinct, ints, numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from tprof.analyze.result import Row

BARS: Final = 5_000  # intervals up to which each is drawn
LONGEST: Final = 100  # that are drawn, and can be clicked, where not all are
PIXELS: Final = 1_200
LANES: Final = 48


@dataclass(frozen=True)
class Wanted:
    """A filter.

    Attributes:
        kinds: of lanes; empty for all.
        parts: phases and `busy.PURPOSE`s; empty for all.
        kernel: glob over kernel names; of streams.
        shape: a part of the shape key of the launch; of streams.
        ranges: globs of ranges: those, and what was launched in them on streams.
        min_ns: shorter intervals are left out; a power of ten.
    """

    kinds: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    kernel: str = ""
    shape: str = ""
    ranges: tuple[str, ...] = ()
    min_ns: int = 0


@dataclass(frozen=True, eq=False)
class Bars:
    """Intervals that are drawn each by itself; arrays of shape (intervals,)."""

    lane: np.ndarray  # position in `Zoom.lanes`
    start: np.ndarray
    end: np.ndarray
    part: np.ndarray  # index into PARTS
    row: np.ndarray  # of `device` or `host`, as the lane says; -1 for none

    def only(self, which: np.ndarray) -> Bars:
        """Some of them."""
        return Bars(*(getattr(self, f.name)[which] for f in fields(self)))


@dataclass(frozen=True, eq=False)
class Zoom:
    """A window.

    Attributes:
        window: start and end, ns.
        lanes: that have anything in it.
        intervals: that reach into it; `hidden`: lanes beyond the most that are shown.
        edges: of the pixels, ns; shape (pixels + 1,).
        spent: per lane, by index into PARTS, ns in each pixel, shape (pixels,); empty where all bars are drawn.
        bars: all intervals, or the longest.
    """

    window: tuple[int, int]
    lanes: list[Lane]
    intervals: int
    hidden: int
    edges: np.ndarray
    spent: list[dict[int, np.ndarray]]
    bars: Bars


def zoom(trace: Trace, all_lanes: Sequence[Lane], window: tuple[int, int], wanted: Wanted) -> Zoom:
    """What is in a window.

    Args:
        trace: the trace of the lanes.
        all_lanes: as `lanes` makes them.
        window: start and end, ns.
        wanted: filter.
    """
    kept = [(lane, _codes(lane, wanted)) for lane in _chosen(trace, all_lanes, window, wanted) if len(lane.start)]
    counts = [lane.blocks.count(*window, codes) for lane, codes in kept]
    filled = [pair for pair, count in zip(kept, counts, strict=True) if count]
    shown, fine = filled[:LANES], sum(counts) <= BARS
    edges = pixels(*window, PIXELS)
    spent = [] if fine else [_by_part(lane, codes, edges) for lane, codes in shown]
    rows = [lane.blocks.longest(*window, BARS if fine else LONGEST, codes) for lane, codes in shown]
    bars = _bars([lane for lane, _ in shown], rows)
    bars = bars if fine else bars.only(np.argsort(bars.start - bars.end, kind="stable")[:LONGEST])
    return Zoom(window, [lane for lane, _ in shown], sum(counts), len(filled) - len(shown), edges, spent, bars)


def _codes(lane: Lane, wanted: Wanted) -> np.ndarray:
    """Which codes of a lane are wanted, shape (codes,) bool."""
    part = np.array([name in wanted.parts or not wanted.parts or name == RANGE for name, _ in PARTS])
    return part[lane.parts] & (lane.least >= wanted.min_ns)


def _by_part(lane: Lane, codes: np.ndarray, edges: np.ndarray) -> dict[int, np.ndarray]:
    spent = lane.blocks.spent(edges)
    return {int(p): spent[codes & (lane.parts == p)].sum(axis=0) for p in distinct(lane.parts[codes])}


def _bars(shown: Sequence[Lane], rows: Sequence[np.ndarray]) -> Bars:
    parts = [
        (np.full(len(r), i), lane.start[r], lane.end[r], lane.value[r], _lane_rows(lane, r))
        for i, (lane, r) in enumerate(zip(shown, rows, strict=True))
    ]
    none = (np.zeros(0, np.int64),) * 5
    return Bars(*(np.concatenate(column) for column in zip(none, *parts, strict=True)))


def _lane_rows(lane: Lane, which: np.ndarray) -> np.ndarray:
    return np.full(len(which), NONE) if lane.row is None else lane.row[which]


def _chosen(trace: Trace, all_lanes: Iterable[Lane], window: tuple[int, int], wanted: Wanted) -> Iterator[Lane]:
    """The lanes of the wanted kinds; streams and ranges with the wanted rows of the window alone."""
    rows = _Rows(trace, wanted)
    for lane in all_lanes:
        if wanted.kinds and lane.kind not in wanted.kinds:
            continue
        if lane.row is None or not (wanted.ranges or (lane.kind == "stream" and (wanted.kernel or wanted.shape))):
            yield lane
            continue
        first, last = lane.blocks.within(*window)
        keep = rows.wanted_of(lane.kind, lane.row[first:last])
        yield lane if keep.all() else lane.only(np.flatnonzero(keep) + first)


@dataclass(frozen=True)
class _Rows:
    """Which rows of `device` and `host` a filter wants."""

    trace: Trace
    wanted: Wanted

    def wanted_of(self, kind: str, row: np.ndarray) -> np.ndarray:
        """Which of some rows of the table that a kind of lane is made from, shape (rows,) bool."""
        if kind == "ranges":
            return np.isin(row, self._ranges)
        device, wanted = self.trace.device, self.wanted
        keep = np.ones(len(row), bool)
        if wanted.kernel:
            keep &= labelled(device, "name", lambda name: fnmatchcase(name, wanted.kernel), row)
        launch = ints(device, "launch")[row]
        if wanted.shape:
            call = asked_by(device)[row]
            keep &= self._shaped(call) | self._shaped(looked_up(ints(self.trace.host, "parent"), call))
        if wanted.ranges:
            called = np.flatnonzero(keep & (launch != NONE))
            inside = at(self._spans, ints(self.trace.host, "start_ns")[launch[called]]) != NONE
            keep[:] = False
            keep[called[inside]] = True
        return keep

    def _shaped(self, row: np.ndarray) -> np.ndarray:
        """Which rows of `host` (-1: none) have a shape key that holds the text."""
        return labelled(self.trace.host, "shape_key", lambda key: self.wanted.shape in key, row)

    @cached_property
    def _ranges(self) -> np.ndarray:
        return match_ranges(self.trace, self.wanted.ranges)

    @property
    def _spans(self) -> tuple[np.ndarray, np.ndarray]:
        """When any of the ranges was open."""
        return union(*(ints(self.trace.host, column)[self._ranges] for column in ("start_ns", "end_ns")))


def details(trace: Trace, lane: tuple[str, int], start_ns: int, row: int, zero_ns: int) -> dict[str, list[Row]]:
    """What is known of an interval of a lane.

    Args:
        trace: where.
        lane: its kind, and the row of its thread or device.
        start_ns: its begin.
        row: of `device` or `host`; -1 for a phase.
        zero_ns: the first event.

    Returns:
        `event`: what its table says, one row; `launch`: the call that enqueued it; `capture`: the call of which it is a
        graph's replay; `stack`: what was open on the thread when it began, or when it was launched, outermost first.
        Each also has `at_ns`, from the first event, and `total_ns`.
    """
    kind, of = lane
    table = trace.device if kind == "stream" else trace.host
    event = _rows(table, np.array([row]), zero_ns) if 0 <= row < len(table) else []
    call, captured = (
        _rows(trace.host, np.array([r[c] for r in event if r.get(c) is not None], np.int64), zero_ns)
        for c in ("launch", "capture")
    )
    thread, instant = (call[0]["thread"], call[0]["start_ns"]) if call else (of, start_ns)
    on_thread = bool(call) or kind in ("thread", "ranges")
    return {
        "event": event,
        "launch": call,
        "capture": captured,
        "stack": _stack(trace, thread, instant, zero_ns) if on_thread else [],
    }


def _rows(data: pa.Table, rows: np.ndarray, zero_ns: int) -> list[Row]:
    """Some rows with their duration, as they are in their table."""
    found = data.take(numbers(rows)).to_pylist()
    return [{**row, "at_ns": row["start_ns"] - zero_ns, "total_ns": row["end_ns"] - row["start_ns"]} for row in found]


def _stack(trace: Trace, thread: int, instant: int, zero_ns: int) -> list[Row]:
    host = trace.host
    start, end = ints(host, "start_ns"), ints(host, "end_ns")
    rows = np.flatnonzero((start <= instant) & (end > instant) & (ints(host, "thread") == thread))
    return _rows(host, rows[np.lexsort((-end[rows], start[rows]))], zero_ns)
