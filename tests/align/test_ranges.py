"""Ranges: which are requests, and what lies in what."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.small import call, span, trace

from tprof.align import ranges
from tprof.align.ranges import add_parents, by_thread, match_ranges, open_at, request_rows
from tprof.model import ints

if TYPE_CHECKING:
    import pytest

ROWS = [
    span(0, 100, "request#1"),
    span(0, 90, "ProfilerStep#3"),
    span(5, 50, "load", "startend"),
    span(5, 50, "request-op", "op"),
    span(7, 9, "request#1", thread=1),
]


def test_requests_have_default_names() -> None:
    assert request_rows(trace(ROWS)).tolist() == [0, 4]
    assert request_rows(trace(ROWS[1:4])).tolist() == [0]
    assert request_rows(trace(ROWS[2:4])).tolist() == []


def test_the_users_globs_come_first() -> None:
    assert request_rows(trace(ROWS), ("load", "Prof*")).tolist() == [1, 2]
    assert request_rows(trace(ROWS), ("nothing*",)).tolist() == []
    assert match_ranges(trace(ROWS), ["request*"]).tolist() == [0, 4]


def test_parent_is_the_innermost_range_operator_or_frame_of_the_same_thread() -> None:
    rows = [
        span(0, 100, "outer"),
        span(10, 60, "aten::mm", "op"),
        span(20, 30, "model.py(1): f", "python"),
        call(22, 25),
        call(23, 24, "cuLaunchKernel", kind="driver"),
        call(40, 45),
        span(5, 90, "apart", "startend"),
        call(70, 75),
        call(22, 25, thread=1),
        span(95, 99, "poll", "osrt"),
    ]
    assert ints(add_parents(trace(rows)).host, "parent").tolist() == [-1, 0, 1, 2, 2, 1, -1, 0, -1, -1]
    assert add_parents(trace()).host.num_rows == 0


def test_by_thread_keeps_the_order_of_rows() -> None:
    thread = ints(trace([call(0, 1, thread=t) for t in (1, 0, 1)]).host, "thread")
    assert [(on, rows.tolist()) for on, rows in by_thread(thread)] == [(0, [1]), (1, [0, 2])]
    assert list(by_thread(thread[:0])) == []


ROW = st.tuples(st.integers(0, 9), st.integers(0, 4), st.sampled_from(["op", "range", "runtime"]), st.integers(0, 3))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(ROW, min_size=2, max_size=30))
def test_all_threads_at_once_say_what_one_after_the_other_does(
    rows: list[tuple[int, int, str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events that nest, overlap, touch and are empty: on one axis for all threads, and on each thread's own."""
    found = trace([span(begin, begin + length, kind, kind, thread=on) for begin, length, kind, on in rows])
    instant, thread = np.arange(60) % 15, np.arange(60) // 15
    told = []
    for few, many in ((0, 40), (0, 0), (500, 40)):
        monkeypatch.setattr(ranges, "FEW", few)
        monkeypatch.setattr(ranges, "MANY", many)
        told.append(
            [
                ints(add_parents(found).host, "parent").tolist(),
                open_at(found.host, np.arange(len(rows)), instant, thread).tolist(),
            ]
        )
    assert told[0] == told[1] == told[2]
