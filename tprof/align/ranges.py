"""User ranges: which rows are ranges, which match a pattern, and which event lies in which (parents)."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.calls import holds, is_kind
from tprof.intervals import NONE, innermost, parents
from tprof.model import Trace, codes, ints, put, refine

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

# A unit of latency, if the user names none: tried in this order, the first that matches anything is taken.
DEFAULT_REQUESTS = (("request*",), ("ProfilerStep*",))

# A sweep for each thread costs 0.2 ms a thread, one sweep of all a sort of all. Where the two meet, on average:
FEW = 500  # events and instants of a thread; of fewer, one sweep takes less
MANY = 40  # threads; of more, grouping the instants takes less than looking through them for each thread


def match_ranges(trace: Trace, patterns: Iterable[str]) -> np.ndarray:
    """Rows of `host` that are user ranges and whose name matches a glob, in row order."""
    wanted = holds(trace.host, "name", lambda name: any(fnmatchcase(name, p) for p in patterns))
    return np.flatnonzero(wanted & is_kind(trace.host, "range", "startend", "request"))


def request_rows(trace: Trace, patterns: Sequence[str] = ()) -> np.ndarray:
    """Rows of `host` that are requests: by the given globs, else by the default names."""
    if patterns:
        return match_ranges(trace, patterns)
    if len(recorded := np.flatnonzero(is_kind(trace.host, "request"))):
        return recorded
    return next((rows for group in DEFAULT_REQUESTS if len(rows := match_ranges(trace, group))), np.zeros(0, np.int64))


def process_of(trace: Trace) -> np.ndarray:
    """Number of the process that each row of `threads` belongs to, shape (threads,)."""
    return refine(codes(trace.threads, "host")[0], ints(trace.threads, "pid"))


def by_thread(thread: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """(thread, rows) for every thread that has rows, rows in their given order."""
    if len(thread) and (thread == thread[0]).all():
        yield int(thread[0]), np.arange(len(thread))
        return
    narrow = thread.astype(np.int16) if thread.max(initial=0) < 1 << 15 else thread  # which numpy sorts by radix
    order = np.argsort(narrow, kind="stable")
    cuts = np.flatnonzero(np.diff(thread[order])) + 1
    for rows in np.split(order, cuts):
        if len(rows):
            yield int(thread[rows[0]]), rows


def open_at(events: pa.Table, rows: np.ndarray, instant: np.ndarray, thread: np.ndarray) -> np.ndarray:
    """Row of the innermost event that is open on a thread at an instant, -1 for none; shape (instants,).

    Args:
        events: a table with `start_ns`, `end_ns` and `thread`.
        rows: of the events that count.
        instant: ns, shape (instants,).
        thread: row of `threads`, of each instant.
    """
    start, end, on = (ints(events, c) for c in ("start_ns", "end_ns", "thread"))
    on = on[rows]
    threads = _threads(on)
    if len(on) + len(instant) < FEW * threads:
        start, end, instant = on_one_axis((on, start[rows]), (on, end[rows]), (thread, instant))
        return looked_up(rows, innermost(start, end).at(instant))
    out = np.full(len(instant), NONE)
    grouped = dict(by_thread(thread)) if threads > MANY else None
    for one, at in by_thread(on):
        here = np.flatnonzero(thread == one) if grouped is None else grouped.get(one, rows[:0])
        out[here] = innermost(start, end, rows[at]).at(instant[here])
    return out


def _threads(thread: np.ndarray) -> int:
    """How many threads a column names."""
    return int(np.count_nonzero(np.bincount(thread)))


def on_one_axis(*instants: tuple[np.ndarray, np.ndarray]) -> list[np.ndarray]:
    """Instants of many threads on one axis, on which the threads lie one after the other.

    Args:
        instants: thread and ns, shape (instants,) both.

    Returns:
        For each pair, shape (instants,): of one thread's instants the order, and which are the same, are kept.
    """
    thread, time = (np.concatenate(columns) for columns in zip(*instants, strict=True))
    order = np.lexsort((time, thread))
    new = (np.diff(thread[order]) != 0) | (np.diff(time[order]) != 0)
    place = np.empty(len(order), np.int64)
    place[order] = np.append(0, np.cumsum(new))[: len(order)]
    return np.split(place, np.cumsum([len(column) for column, _ in instants])[:-1])


def looked_up(column: np.ndarray, rows: np.ndarray, otherwise: np.ndarray | int = NONE) -> np.ndarray:
    """The column at some rows, something else where a row is -1."""
    if not len(column):
        return np.where(rows == NONE, otherwise, NONE)
    none = rows == NONE
    return np.where(none, otherwise, column[rows]) if none.any() else column[rows]


def enclosing(host: pa.Table, rows: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Innermost event around each row of `host` (-1: none) that is wanted (shape (host rows,) bool), -1 for none."""
    parent = ints(host, "parent")
    above = looked_up(parent, rows)
    while len(wanted) and (other := (above != NONE) & ~wanted[above]).any():
        above[other] = parent[above[other]]
    return above


def _sets(
    rows: np.ndarray, start: np.ndarray, end: np.ndarray, thread: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Rows, begin and end of events of which those of different threads do not overlap, in one set or several."""
    if len(rows) < FEW * _threads(thread[rows]):
        begin, finish = on_one_axis((thread[rows], start[rows]), (thread[rows], end[rows]))
        yield rows, begin, finish
        return
    for _, at in by_thread(thread[rows]):
        yield rows[at], start[rows[at]], end[rows[at]]


def add_parents(trace: Trace) -> Trace:
    """Fill `host.parent`: the innermost op, python frame or nesting range around each event on its thread."""
    host = trace.host
    containers, calls = (
        np.flatnonzero(is_kind(host, "op", "python", "range")),
        np.flatnonzero(is_kind(host, "runtime", "driver")),
    )
    start, end, thread = (ints(host, c) for c in ("start_ns", "end_ns", "thread"))
    out = np.full(host.num_rows, NONE)
    for rows, begin, finish in _sets(containers, start, end, thread):
        out[rows] = looked_up(rows, parents(begin, finish))
    out[calls] = open_at(host, containers, start[calls], thread[calls])
    return replace(trace, host=put(host, parent=out))
