"""Launch to device event by correlation id, within a process."""

from __future__ import annotations

from support.small import call, kernel, trace

from tprof.align.links import find_launches, link_launches
from tprof.model import ints


def links(host: list[dict[str, object]], device: list[dict[str, object]]) -> list[int]:
    return find_launches(trace(host, device)).tolist()


def test_a_launch_is_found_by_its_correlation() -> None:
    host = [call(0, 1, correlation=7), call(2, 3, correlation=9)]
    assert links(host, [kernel(5, 6, correlation=9), kernel(6, 7, correlation=7)]) == [1, 0]


def test_one_graph_launch_has_many_kernels() -> None:
    host = [call(0, 1, "cudaGraphLaunch", correlation=3)]
    assert links(host, [kernel(5, 6, correlation=3), kernel(6, 7, correlation=3)]) == [0, 0]


def test_the_outermost_of_the_rows_of_one_call_wins() -> None:
    host = [
        call(1, 3, "cuLaunchKernel", kind="driver", correlation=4),
        call(0, 4, "cudaLaunchKernel", correlation=4),
    ]
    assert links(host, [kernel(5, 6, correlation=4)]) == [1]


def test_a_call_that_enqueues_wins_over_one_that_does_not() -> None:
    host = [call(0, 9, "cudaStreamSynchronize", correlation=4), call(1, 3, "cudaMemcpyAsync", correlation=4)]
    assert links(host, [kernel(5, 6, correlation=4)]) == [1]


def test_ids_of_two_processes_never_meet() -> None:
    host = [call(0, 1, correlation=7, pid=1), call(0, 1, correlation=7, pid=2)]
    assert links(host, [kernel(5, 6, correlation=7, pid=2), kernel(5, 6, correlation=7, pid=3)]) == [1, -1]


def test_zero_and_no_correlation_link_nothing() -> None:
    host = [call(0, 1, correlation=0), call(0, 1), {**call(0, 1, correlation=5), "kind": "op"}]
    assert links(host, [kernel(5, 6, correlation=0), kernel(5, 6), kernel(6, 7, correlation=5)]) == [-1, -1, -1]


def test_unlinked_events_are_kept_and_said() -> None:
    linked = link_launches(
        trace([call(0, 1, correlation=1)], [kernel(5, 6, correlation=1), kernel(7, 8, correlation=2)])
    )
    assert ints(linked.device, "launch").tolist() == [0, -1]
    (note,) = linked.notes
    assert (note.code, note.count, note.source) == ("unlinked", 1, "small")
    assert links([], [kernel(5, 6, correlation=1)]) == [-1]


def test_why_an_event_is_unlinked_is_said() -> None:
    host = [call(0, 1, correlation=5), call(2, 3, correlation=9)]
    ids = [{"correlation": n} for n in (3, 4, 5, 7, 12)]
    device = [kernel(10 + n, 11 + n, **row) for n, row in enumerate([*ids, {}, {"correlation": 5, "pid": 2}])]
    (note,) = link_launches(trace(host, device)).notes
    assert note.message.startswith(
        "6 of 7 device events have no recorded launch (1 without a correlation id, 1 of a process without "
        "recorded calls, 2 launched before the first recorded call, 1 whose call was lost, "
        "1 launched after the last recorded call)"
    )
