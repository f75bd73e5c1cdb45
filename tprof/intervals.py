"""Interval algebra on integer nanoseconds: unions, overlaps, and which of nested events is innermost when.

Intervals are half-open, given as two int64 arrays of one length. A *disjoint* set is sorted and does not
overlap itself. Everything is one sort and then linear; laws are held by property tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.machine import stacks

if TYPE_CHECKING:
    from collections.abc import Iterator

Ints = np.ndarray
NONE = -1
_EXACT: Final = 1 << 53  # below, a float64 holds every integer; in ns, 104 days


def edges(*instants: Ints) -> Ints:
    """All the instants, sorted, each once (by a sort: numpy's hashing `unique` takes three times as long here)."""
    t = np.sort(np.concatenate(instants))
    return t[np.concatenate([[True], t[1:] > t[:-1]])] if len(t) else t


def summed(key: Ints, ns: Ints, size: int = 0) -> Ints:
    """Sum of the integers of each key, shape (at least `size`,): by floats as long as they hold it exactly."""
    found = np.bincount(key, ns, size)
    if (found < _EXACT).all():
        return found.astype(np.int64)
    exact = np.zeros(len(found), np.int64)
    np.add.at(exact, key, ns)
    return exact


def union(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """The disjoint set of instants that any of the intervals covers; touching intervals become one."""
    s, e = (start, end) if (solid := end > start).all() else (start[solid], end[solid])
    if (s[1:] < s[:-1]).any():
        order = np.argsort(s, kind="stable")
        s, e = s[order], e[order]
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
    if not len(a[0]) or not len(b[0]):
        none = np.zeros(0, np.int64)
        return none, none, none, none
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
    if not len(b[0]):
        return a
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
        if not len(self.value) or not len(start):
            return start, end, np.full(len(start), NONE), np.arange(len(start))
        padded = self._near(start[0], end[-1]).padded()
        s, e, ia, ib = intersect((start, end), (padded.bounds[:-1], padded.bounds[1:]))
        return s, e, padded.value[ib], ia

    def _near(self, low: int, high: int) -> Steps:
        """The steps that reach into a window, whole."""
        first = max(int(np.searchsorted(self.bounds, low, side="right")) - 1, 0)
        last = int(np.searchsorted(self.bounds, high, side="left"))
        return Steps(self.bounds[first : last + 1], self.value[first:last])

    def within(self, low: int, high: int) -> Steps:
        """The same function on [low, high) only."""
        near = self._near(low, high)
        return Steps(np.clip(near.bounds, low, high), near.value) if len(near.value) and high > low else NOTHING

    def padded(self) -> Steps:
        """The same function on all of time, -1 outside."""
        low, high = np.iinfo(np.int64).min, np.iinfo(np.int64).max
        bounds = self.bounds if len(self.value) else np.zeros(1, np.int64)
        value = np.concatenate([[NONE], self.value, [NONE]], dtype=self.value.dtype)
        return Steps(np.concatenate([[low], bounds, [high]]), value)

    def or_else(self, other: Steps) -> Steps:
        """This function where it is not -1, the other elsewhere."""
        if not len(self.value) or not len(other.value):
            return self if len(self.value) else other
        most, few = (self, other) if len(self.value) > len(other.value) else (other, self)
        at = np.searchsorted(most.bounds, few.bounds)
        new = most.bounds[np.minimum(at, len(most.bounds) - 1)] != few.bounds
        many = most.cut(at[new], few.bounds[new]) if new.any() else most
        place = np.searchsorted(many.bounds, few.bounds)
        rest = np.repeat(few.padded().value, np.diff(place, prepend=0, append=len(many.bounds)))[:-1]
        mine, theirs = (many.value, rest) if most is self else (rest, many.value)
        return Steps(many.bounds, np.where(mine != NONE, mine, theirs))

    def cut(self, at: Ints, instants: Ints) -> Steps:
        """The same function with more bounds, given with the index of the bound that each comes before."""
        value = _or_none(self.value)
        return Steps(np.insert(self.bounds, at, instants), np.insert(value, at, value[at - 1])[:-1])


NOTHING = Steps(np.zeros(0, np.int64), np.zeros(0, np.int16))  # -1 at all times

_BLOCK = 1 << 15  # events that are swept at once: what a sweep needs of them stays in a processor's own cache


def innermost(start: Ints, end: Ints, rows: Ints | None = None, value: Ints | None = None) -> Steps:
    """Which event is innermost at each instant: the open one that began last (ties: ends first; then the later row).

    Args:
        start: of events, shape (events,), ns.
        end: of the same.
        rows: those that count; all by default.
        value: what to say of each event instead of its row, shape (events,).

    Returns:
        Steps of rows or values, -1 where none is open; neighbours alike are one stretch.
    """
    if stacked := stacks.innermost(start, end, rows, value):
        return Steps(*stacked)
    bounds: list[Ints] = []
    values: list[Ints] = []
    low = last = NONE
    for block, _, high in _blocks(start, end, rows):
        time, state = _sweep(start[block], end[block])
        low = low if values else time[0]
        until = time[-1] if high is None else high
        inside = slice(np.searchsorted(time, low, side="right"), np.searchsorted(time, until))
        instants = np.append(low, time[inside])
        before = state[inside.start - 1 : inside.start] if inside.start else [NONE]
        shown = _or_none(block if value is None else value[block])
        known = shown[np.concatenate([before, state[inside]], dtype=np.int32)]
        wide = np.append(instants[1:] > instants[:-1], True)
        instants, known = instants[wide], known[wide]
        new = np.append(not values or known[0] != last, known[1:] != known[:-1])
        bounds.append(instants[new])
        values.append(known[new])
        low, last = until, known[-1]
    return Steps(np.append(np.concatenate(bounds), low), np.concatenate(values)) if values else NOTHING


def last_to_end(start: Ints, end: Ints, value: Ints) -> Steps:
    """Value of the open event that ends last at each instant (ties: the later row), -1 where none is open."""
    if not len(start):
        return NOTHING
    by_end, by_start = np.argsort(end, kind="stable"), np.argsort(start, kind="stable")
    rank = np.empty(len(end), np.int64)
    rank[by_end] = np.arange(len(end))
    longest = by_end[np.maximum.accumulate(rank[by_start])]  # of all that have begun: if it is over, all are
    bounds = edges(start, *(any_open := union(start, end)))
    begun = np.searchsorted(start[by_start], bounds[:-1], side="right") - 1
    return Steps(bounds, np.where(at(any_open, bounds[:-1]) != NONE, value[longest[begun]], NONE))


def parents(start: Ints, end: Ints) -> Ints:
    """Index of the innermost other event that each event lies in, -1 for none.

    An event that outlives the one it began in is not its child; an empty event has no parent.
    """
    if (stacked := stacks.parents(start, end)) is not None:
        return stacked
    out = np.full(len(start), NONE)
    for block, carried, _ in _blocks(start, end):
        s, e = start[block], end[block]
        above = _nested_sweep(s, e)[2]
        if (e > e[above])[above != NONE].any():
            above = _knotted_parents(s, e)
        out[block[carried:]] = _or_none(block)[above[carried:]]
    return out


def _or_none(values: Ints) -> Ints:
    """Values to be looked up by an index that may be -1."""
    return np.append(values, values.dtype.type(NONE))


def _blocks(start: Ints, end: Ints, rows: Ints | None = None) -> Iterator[tuple[Ints, int, int | None]]:
    """Some events at a time, in order of their begin; empty ones are left out.

    Yields:
        rows, outer events first; how many of them began in an earlier block and are open still; the instant at which
        the next block begins. Of earlier events those are left out that will never be innermost again.
    """
    rows = np.arange(len(start)) if rows is None else rows
    rows = rows[end[rows] > start[rows]]
    if (start[rows[1:]] < start[rows[:-1]]).any():
        rows = rows[np.argsort(start[rows], kind="stable")]
    carried, begin = rows[:0], 0
    while begin < len(rows):
        finish = begin + max(_BLOCK, 2 * len(carried))
        while finish < len(rows) and start[rows[finish]] == start[rows[finish - 1]]:
            finish += 1
        block = np.concatenate([carried, _outer_first(start, end, rows[begin:finish])])
        high = int(start[rows[finish]]) if finish < len(rows) else None
        yield block, len(carried), high
        carried = block[end[block] > (high or 0)]
        reach = np.maximum.accumulate(end[carried][::-1])[::-1]
        carried = carried[np.append(reach[:-1] > reach[1:], True)[: len(carried)]]
        begin = finish


def _outer_first(start: Ints, end: Ints, rows: Ints) -> Ints:
    """Events by begin; of those that begin together, the one that ends last comes first."""
    s, e = start[rows], end[rows]
    ties = s[1:] == s[:-1]
    return rows[np.lexsort((-e, s))] if (ties & (e[1:] > e[:-1])).any() else rows


_PASSES = 6  # real traces untangle in one or two; a knot takes the loop


def _sweep(start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Boundaries of events, outer ones first, that may overlap without nesting; and who is innermost after each.

    An event that ends before the one that began inside it is never innermost again after that begin, so cutting it
    there changes nothing and makes all events nest.
    """
    rows = np.arange(len(start), dtype=np.int32)
    for _ in range(_PASSES):
        time, state, above = _nested_sweep(start, end)
        tangled = np.flatnonzero((end > end[above]) & (above != NONE))
        if not len(tangled):
            return time, _or_none(rows)[state]
        np.minimum.at(end, above[tangled], start[tangled])
        rows, start, end = (column[end > start] for column in (rows, start, end))
    end = _untangled(start, end)
    rows, start, end = (column[end > start] for column in (rows, start, end))
    time, state, _ = _nested_sweep(start, end)
    return time, _or_none(rows)[state]


def _nested_sweep(start: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
    """Boundaries of events as if they nested: the last one opened at the depth that is left is innermost.

    Returns:
        the boundaries in time order, ends before begins; who is innermost after each; who is so before each event.
    """
    n = len(start)
    ends = np.sort(end)
    begun = np.arange(n) + np.searchsorted(ends, start, side="right")
    opened = np.full(2 * n, NONE, np.int32)
    opened[begun] = np.arange(n)
    is_begin = opened != NONE
    time = np.empty(2 * n, np.int64)
    time[begun], time[~is_begin] = start, ends
    depth = np.cumsum(np.where(is_begin, np.int8(1), np.int8(-1)), dtype=np.int32)
    deepest = depth.max(initial=0)
    narrow = np.uint8 if deepest < 1 << 8 else np.uint16 if deepest < 1 << 16 else np.uint32
    by_depth = np.argsort(depth.astype(narrow), kind="stable")  # numpy sorts narrow ones by radix
    found = opened[by_depth]
    place = np.where(found != NONE, np.arange(2 * n, dtype=np.int32), 0)
    state = np.empty(2 * n + 1, np.int32)
    state[by_depth] = found[np.maximum.accumulate(place, out=place)]
    state[:-1][depth == 0] = state[-1] = NONE
    return time, state[:-1], state[begun - 1]


def _untangled(start: Ints, end: Ints) -> Ints:
    """Ends of events cut where a longer one begins inside them: the stack that the passes of `_sweep` stand for."""
    stack: list[int] = []
    cut = end.tolist()
    for i, begin in enumerate(start.tolist()):
        while stack and cut[stack[-1]] <= begin:
            stack.pop()
        while stack and cut[stack[-1]] < cut[i]:
            cut[stack.pop()] = begin
        stack.append(i)
    return np.array(cut, np.int64)


def _knotted_parents(start: Ints, end: Ints) -> Ints:
    """Who is around each of events, outer ones first, that overlap without nesting."""
    stack: list[int] = []
    out, ends = [], end.tolist()
    for i, begin in enumerate(start.tolist()):
        while stack and (ends[stack[-1]] <= begin or ends[stack[-1]] < ends[i]):
            stack.pop()
        out.append(stack[-1] if stack else NONE)
        stack.append(i)
    return np.array(out, np.int64)
