from __future__ import annotations

from support.small import call, kernel, span, trace

from tprof.align.cut import cut
from tprof.model import ints


def test_a_window_keeps_what_reaches_in_and_what_launched_it() -> None:
    host = [span(0, 100, "far"), call(10, 20, parent=0), call(110, 120), call(300, 310)]
    device = [kernel(150, 200, launch=1), kernel(170, 180, launch=2), kernel(320, 330, launch=3)]
    part = cut(trace(host, device), (115, 175))
    assert ints(part.host, "start_ns").tolist() == [10, 110]
    assert ints(part.device, "start_ns").tolist() == [150, 170]
    assert ints(part.device, "launch").tolist() == [0, 1]
    assert ints(part.host, "parent").tolist() == [-1, -1]


def test_the_call_that_a_graph_captured_is_kept() -> None:
    host = [call(10, 20), call(30, 40), call(110, 120, "cudaGraphLaunch")]
    part = cut(trace(host, [kernel(150, 200, launch=2, capture=1), kernel(160, 170, launch=2)]), (140, 175))
    assert ints(part.host, "start_ns").tolist() == [30, 110]
    assert ints(part.device, "capture").tolist() == [0, -1]


def test_all_of_a_trace_is_the_trace() -> None:
    host = [span(0, 100, "far"), call(10, 20, parent=0)]
    whole = trace(host, [kernel(30, 40, launch=1), kernel(50, 60)])
    part = cut(whole, (0, 100))
    assert part.host == whole.host
    assert part.device == whole.device
