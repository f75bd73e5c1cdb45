"""Interval algebra on integer nanoseconds: unions, overlaps, and which of nested events is innermost when.

Intervals are half-open, given as two int64 arrays of one length. A *disjoint* set is sorted and does not
overlap itself. Everything is one sort and then linear; laws are held by property tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

Ints = np.ndarray
NONE = -1


def edges(*instants: Ints) -> Ints:
    """All the instants, sorted, each once (by a sort: numpy's hashing `unique` takes three times as long here)."""
    t = np.sort(np.concatenate(instants))
    return t[np.concatenate([[True], t[1:] > t[:-1]])] if len(t) else t


def union(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The disjoint set of instants that any of the intervals covers; touching intervals become one."""
    solid = end > start
    order = np.argsort(start[solid], kind="stable")
    s, e = start[solid][order], end[solid][order]
    if not len(s):
        return s.astype(np.int64), e.astype(np.int64)
    reach = np.maximum.accumulate(e)
    first = np.concatenate([[True], s[1:] > reach[:-1]])
    last = np.concatenate([first[1:], [True]])
    return s[first], reach[last]


def total(start: Ints, end: Ints) -> int:
    """Sum of the lengths, ns."""
    return int((end - start).sum())


def covered(start: Ints, end: Ints) -> int:
    """Length of the union, ns."""
    return total(*union(start, end))


def gaps(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The holes inside a disjoint set, between its first and its last instant."""
    return end[:-1], start[1:]


def intersect(a: tuple[Ints, Ints], b: tuple[Ints, Ints]) -> tuple[Ints, Ints, Ints, Ints]:
    """Overlaps of two disjoint sets.

    Returns:
        start, end, index into a, index into b; one entry per overlapping pair, in time order.
    """
    first = np.searchsorted(b[1], a[0], side="right")
    last = np.searchsorted(b[0], a[1], side="left")
    ia, ib = expand(first, last)
    s, e = np.maximum(a[0][ia], b[0][ib]), np.minimum(a[1][ia], b[1][ib])
    keep = e > s
    return s[keep], e[keep], ia[keep], ib[keep]


def expand(first: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Row i repeated for every index in [first[i], last[i]): (rows, indices)."""
    count = np.maximum(last - first, 0)
    rows = np.repeat(np.arange(len(first)), count)
    offset = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    return rows, np.repeat(first, count) + offset


def subtract(a: tuple[Ints, Ints], b: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """What a disjoint set covers and another disjoint set does not."""
    b = near(b, a)
    edge = edges(*a, *b)
    if len(edge) < 2:
        return edge[:0], edge[:0]
    inside = (at(a, edge[:-1]) != NONE) & (at(b, edge[:-1]) == NONE)
    return union(edge[:-1][inside], edge[1:][inside])


def near(a: tuple[Ints, Ints], b: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """The intervals of a disjoint set between the first and the last instant of another."""
    if not len(b[0]):
        return a[0][:0], a[1][:0]
    reach = slice(np.searchsorted(a[1], b[0][0], side="right"), np.searchsorted(a[0], b[1][-1], side="left"))
    return a[0][reach], a[1][reach]


def at(a: tuple[Ints, Ints], instant: Ints) -> Ints:
    """Index of the interval of a disjoint set that covers each instant, -1 for none."""
    if not len(a[0]):
        return np.full(len(instant), NONE)
    i = np.searchsorted(a[0], instant, side="right") - 1
    return np.where((i >= 0) & (instant < a[1][i]), i, NONE)


def clip(start: Ints, end: Ints, low: int, high: int) -> tuple[Ints, Ints]:
    """The intervals inside a window; those outside become empty (end == start)."""
    s, e = np.clip(start, low, high), np.clip(end, low, high)
    return s, np.maximum(s, e)


def touches(start: Ints, end: Ints, low: int, high: int) -> Ints:
    """Whether each interval reaches into a window, shape (rows,) bool; an empty one also where it lies on an edge."""
    return np.where(end > start, (start < high) & (end > low), (start >= low) & (start <= high))


@dataclass(frozen=True)
class Steps:
    """A function of time that is constant between bounds: value[i] holds in [bounds[i], bounds[i + 1])."""

    bounds: Ints
    value: Ints

    def at(self, instant: Ints) -> Ints:
        """Value at each instant, -1 outside."""
        if not len(self.value):
            return np.full(len(instant), NONE)
        i = np.searchsorted(self.bounds, instant, side="right") - 1
        inside = (i >= 0) & (i < len(self.value))
        return np.where(inside, self.value[np.clip(i, 0, len(self.value) - 1)], NONE)

    def over(self, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints, Ints]:
        """Cut a disjoint set at the bounds.

        Returns:
            start, end, value (-1 outside the bounds), index of the interval; the pieces partition the intervals.
        """
        padded = self._near(start[0], end[-1]).padded() if len(start) else self
        s, e, ia, ib = intersect((start, end), (padded.bounds[:-1], padded.bounds[1:]))
        return s, e, padded.value[ib], ia

    def _near(self, low: int, high: int) -> Steps:
        """The steps that reach into a window, whole."""
        first = max(int(np.searchsorted(self.bounds, low, side="right")) - 1, 0)
        last = int(np.searchsorted(self.bounds, high, side="left"))
        return Steps(self.bounds[first : last + 1], self.value[first:last])

    def within(self, low: int, high: int) -> Steps:
        """The same function on [low, high) only."""
        s, e, value, _ = self.over(np.array([low]), np.array([high]))
        return Steps(np.append(s, e[-1:]), value)

    def padded(self) -> Steps:
        """The same function on all of time, -1 outside."""
        low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        bounds = self.bounds if len(self.value) else np.zeros(1, np.int64)
        return Steps(np.concatenate([[low], bounds, [high]]), np.concatenate([[NONE], self.value, [NONE]]))

    def or_else(self, other: Steps) -> Steps:
        """This function where it is not -1, the other elsewhere."""
        if not len(self.value) or not len(other.value):
            return self if len(self.value) else other
        both = np.concatenate([self.bounds, other.bounds])
        order = np.argsort(both, kind="stable")  # of two sorted runs: linear
        both = both[order]
        last = np.append(both[1:] > both[:-1], True)
        begun = np.cumsum(order < len(self.bounds))[last]
        mine = self.padded().value[begun][:-1]
        theirs = other.padded().value[(np.flatnonzero(last) + 1 - begun)][:-1]
        return Steps(both[last], np.where(mine != NONE, mine, theirs))


def innermost(start: Ints, end: Ints) -> Steps:
    """Which event is innermost at each instant: the open one that began last (ties: ends first; then the later row).

    Returns:
        Steps whose value is the event's index, -1 where none is open.
    """
    sweep = _sweep(start, end)
    wide = np.flatnonzero(sweep.time[1:] > sweep.time[:-1])
    if not len(wide):
        return Steps(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return Steps(np.append(sweep.time[wide], sweep.time[-1]), sweep.state[wide])


def parents(start: Ints, end: Ints) -> Ints:
    """Index of the innermost other event that each event lies in, -1 for none.

    An event that outlives the one it began in is not its child; an empty event has no parent.
    """
    order = _outer_first(start, end)
    above = _nested_sweep(start, end, order).parents()
    return _stacked_parents(start, end, order) if ((above != NONE) & (end > end[above])).any() else above


@dataclass(frozen=True)
class _Sweep:
    """Boundaries of events in time order, and who is innermost after each."""

    time: Ints
    state: Ints
    position: Ints  # where each event begins, -1 for an empty one

    def parents(self) -> Ints:
        out = np.full(len(self.position), NONE)
        begun = self.position > 0
        out[begun] = self.state[self.position[begun] - 1]
        return out


def _outer_first(start: Ints, end: Ints) -> Ints:
    """Events that are not empty, by begin; of those that begin together, the one that ends last is outermost."""
    solid = np.flatnonzero(end > start)
    begins = start[solid]
    if (begins[1:] > begins[:-1]).all():
        return solid
    return solid[np.lexsort((-end[solid], begins))]


_PASSES = 6  # real traces untangle in one or two; a knot takes the loop


def _sweep(start: Ints, end: Ints) -> _Sweep:
    """Boundaries of events that may overlap without nesting.

    An event that ends before the one that began inside it is never innermost again after that begin, so cutting it
    there changes nothing and makes all events nest.
    """
    order = _outer_first(start, end)  # by the given ends: cutting must not change who is outer
    end = end.copy()
    for _ in range(_PASSES):
        sweep = _nested_sweep(start, end, order)
        above = sweep.parents()
        tangled = np.flatnonzero((above != NONE) & (end > end[above]))
        if not len(tangled):
            return sweep
        np.minimum.at(end, above[tangled], start[tangled])
        order = order[end[order] > start[order]]
    end = _untangled(start, end, order)
    return _nested_sweep(start, end, order[end[order] > start[order]])


def _nested_sweep(start: Ints, end: Ints, order: Ints) -> _Sweep:
    """Boundaries of events as if they nested: the last one opened at the depth that is left is innermost."""
    n = len(order)
    both = np.concatenate([np.sort(end[order]), start[order]])
    merged = np.argsort(both, kind="stable")  # two sorted runs: linear; at one instant ends come before begins
    time, is_begin = both[merged], merged >= n
    opened = np.full(2 * n, NONE, np.int32)
    opened[is_begin] = order
    depth = np.cumsum(np.where(is_begin, np.int8(1), np.int8(-1)), dtype=np.int32)
    narrow = depth.astype(np.int16) if depth.max(initial=0) < 1 << 15 else depth  # which numpy sorts by radix
    by_depth = np.argsort(narrow, kind="stable")
    found = opened[by_depth]
    place = np.where(found != NONE, np.arange(2 * n, dtype=np.int32), 0)
    state = np.empty(2 * n, np.int32)
    state[by_depth] = found[np.maximum.accumulate(place, out=place)]
    state[depth == 0] = NONE
    position = np.full(len(start), NONE)
    position[order] = np.flatnonzero(is_begin)
    return _Sweep(time, state, position)


def _untangled(start: Ints, end: Ints, order: Ints) -> Ints:
    """Ends of events cut where a longer one begins inside them: the stack that the passes of `_sweep` stand for."""
    stack: list[int] = []
    cut, begins = end.tolist(), start.tolist()
    for i in order.tolist():
        while stack and cut[stack[-1]] <= begins[i]:
            stack.pop()
        while stack and cut[stack[-1]] < cut[i]:
            cut[stack.pop()] = begins[i]
        stack.append(i)
    return np.array(cut, np.int64)


def _stacked_parents(start: Ints, end: Ints, order: Ints) -> Ints:
    """`parents` for events that overlap without nesting."""
    stack: list[int] = []
    out, ends, begins = [NONE] * len(start), end.tolist(), start.tolist()
    for i in order.tolist():
        while stack and (ends[stack[-1]] <= begins[i] or ends[stack[-1]] < ends[i]):
            stack.pop()
        out[i] = stack[-1] if stack else NONE
        stack.append(i)
    return np.array(out, np.int64)
