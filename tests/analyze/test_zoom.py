"""Lanes and windows of the timeline."""

from __future__ import annotations

import numpy as np
import pytest
from support.small import call, kernel, span, trace

import tprof
from tprof.analyze import zoom as zooming
from tprof.analyze.attribution import Attribution
from tprof.analyze.lanes import PARTS, RANGE, Lane, lanes
from tprof.analyze.zoom import Wanted, details, zoom


def _small():
    host = [
        span(0, 100, "request"),
        span(10, 40, "inner"),
        call(20, 30, correlation=1),
        call(50, 60, correlation=2),
        span(200, 210, "late"),
    ]
    device = [
        kernel(30, 60, "gemm", launch=2, purpose="work"),
        kernel(50, 90, "fill", launch=3, purpose="tuning", purpose_basis="inferred"),
        kernel(300, 301, "gemm", launch=3, purpose="work"),
    ]
    return trace(host, device, threads=1)


def _lanes(of=None) -> dict[str, Lane]:
    return {lane.label: lane for lane in lanes(Attribution(of or _small()))}


def _names(view) -> list[tuple[str, int, int, str]]:
    bars = view.bars
    return [
        (view.lanes[i].label, start, end, PARTS[part][0])
        for i, start, end, part in zip(bars.lane, bars.start, bars.end, bars.part, strict=True)
    ]


def test_lanes_of_a_device_a_thread_and_its_ranges() -> None:
    found = _lanes()
    assert list(found) == ["where its time went", "stream 7", "thread 1", "thread 1, ranges", "thread 1, ranges 2"]
    assert (found["thread 1, ranges"].start.tolist(), found["thread 1, ranges"].row.tolist()) == ([0, 200], [0, 4])
    assert found["thread 1, ranges 2"].start.tolist() == [10]


def test_where_events_of_a_stream_overlap_the_later_one_is_shown() -> None:
    stream = _lanes()["stream 7"]
    assert (stream.start.tolist(), stream.end.tolist(), stream.row.tolist()) == (
        [30, 50, 300],
        [50, 90, 301],
        [0, 1, 2],
    )
    assert [PARTS[v] for v in stream.value] == [
        ("busy.work", "recorded"), ("busy.tuning", "inferred"), ("busy.work", "recorded"),
    ]  # fmt: skip


def test_the_device_lane_is_the_whole_time_of_the_trace(sample_traces) -> None:
    for path in sorted(sample_traces.glob("*.gz")):
        of = tprof.load(path).attribution
        for lane in lanes(of):
            assert (lane.end > lane.start).all()
            assert (lane.start[1:] >= lane.end[:-1]).all()
            if lane.kind == "device":
                assert (lane.end - lane.start).sum() == of.extent[1] - of.extent[0]


def test_a_window_sums_to_what_idle_says(sample_traces, monkeypatch) -> None:
    monkeypatch.setattr(zooming, "BARS", 0)
    of = tprof.load(sample_traces / "h200-torch.json.gz")
    low, high = of.attribution.extent
    window = low + (high - low) // 3, low + (high - low) // 2
    view = zoom(of, lanes(of.attribution), window, Wanted(kinds=("device",)))
    spent = {PARTS[code][0]: int(each.sum()) for code, each in view.spent[0].items() if each.any()}
    said = of.summary(tprof.Options(window)).payload["devices"][0]["wall_by_phase"]
    by_part: dict[str, int] = {}
    for part, ns in said.items():
        name = part if part.startswith("busy.") else part.partition(".")[2]
        by_part[name] = by_part.get(name, 0) + ns
    assert spent == by_part


def test_few_intervals_are_bars_and_many_are_shares_with_the_longest(monkeypatch) -> None:
    of = _small()
    fine = zoom(of, list(_lanes(of).values()), (0, 310), Wanted())
    assert fine.spent == []
    assert len(fine.bars.start) == fine.intervals
    monkeypatch.setattr(zooming, "BARS", 3)
    monkeypatch.setattr(zooming, "LONGEST", 2)
    coarse = zoom(of, list(_lanes(of).values()), (0, 310), Wanted())
    assert len(coarse.spent) == len(coarse.lanes) == 5
    longest = np.sort(fine.bars.end - fine.bars.start)[::-1][:2]
    assert (coarse.bars.end - coarse.bars.start).tolist() == longest.tolist()


def test_filters() -> None:
    of = _small()
    every = list(_lanes(of).values())

    def kept(lane: str, **wanted) -> list[tuple[int, int]]:
        return [
            (s, e) for label, s, e, _ in sorted(_names(zoom(of, every, (0, 310), Wanted(**wanted)))) if label == lane
        ]

    assert kept("stream 7") == [(30, 50), (50, 90), (300, 301)]
    assert kept("stream 7", kernel="g*") == [(30, 50), (300, 301)]
    assert kept("stream 7", min_ns=10) == [(30, 50), (50, 90)]
    assert kept("stream 7", parts=("busy.tuning",)) == [(50, 90)]
    assert kept("stream 7", ranges=("inner",)) == [(30, 50)]
    assert kept("thread 1, ranges", ranges=("late",)) == [(200, 210)]
    assert kept("stream 7", kinds=("thread",)) == []
    assert zoom(of, every, (400, 500), Wanted()).lanes == []


def test_shape_filter_finds_the_launch_or_its_operator() -> None:
    host = [
        span(0, 100, "aten::mm", kind="op", shape_key="[512, 64]"),
        call(20, 30, parent=0),
        call(40, 45, shape_key="M=512"),
        call(50, 55, shape_key="M=1"),
    ]
    of = trace(host, [kernel(60 + 10 * i, 65 + 10 * i, launch=i) for i in (1, 2, 3)], threads=1)
    view = zoom(of, lanes(Attribution(of)), (0, 200), Wanted(kinds=("stream",), shape="512"))
    assert view.bars.row.tolist() == [0, 1]


def test_shape_filter_finds_what_a_graph_replays_and_details_name_it() -> None:
    host = [call(20, 30, shape_key="M=512"), call(40, 45, "cudaGraphLaunch")]
    of = trace(host, [kernel(60, 65, launch=1, capture=0), kernel(70, 75, launch=1)], threads=1)
    view = zoom(of, lanes(Attribution(of)), (0, 200), Wanted(kinds=("stream",), shape="512"))
    assert view.bars.row.tolist() == [0]
    found = details(of, ("stream", 0), 60, 0, 0)
    assert [found[what][0]["name"] for what in ("launch", "capture")] == ["cudaGraphLaunch", "cudaLaunchKernel"]


@pytest.mark.parametrize("kind", ["overhead", "mark"])
def test_a_thread_with_nothing_but_the_profilers_own_rows_has_no_lane(kind) -> None:
    beside = {"tid": 2, "thread": 1}
    host = [call(0, 50), span(5, 60, "Lazy Function Loading", kind, **beside)]
    assert list(_lanes(trace(host))) == ["thread 1"]
    assert list(_lanes(trace([*host, span(10, 20, "read", "osrt", **beside)]))) == ["thread 1", "thread 2"]


@pytest.mark.parametrize("name", ["cold-torch", "warm-torch", "graphs-torch"])
def test_the_serving_thread_is_the_one_thread_of_a_recorded_run(name, sample_traces) -> None:
    shown = [lane.label for lane in lanes(tprof.load(sample_traces / name).attribution) if lane.kind == "thread"]
    assert shown == ["MainThread"]


def test_lanes_beyond_the_most_are_counted(monkeypatch) -> None:
    monkeypatch.setattr(zooming, "LANES", 2)
    view = zoom(_small(), list(_lanes().values()), (0, 310), Wanted())
    assert (len(view.lanes), view.hidden) == (2, 3)


def test_details_of_a_kernel_name_its_launch_and_what_was_open() -> None:
    of = _small()
    found = details(of, ("stream", 0), 30, 0, 0)
    assert (found["event"][0]["name"], found["event"][0]["total_ns"]) == ("gemm", 30)
    assert found["launch"][0]["at_ns"] == 20
    assert [row["name"] for row in found["stack"]] == ["request", "inner", "cudaLaunchKernel"]


def test_details_of_a_phase_and_of_nothing() -> None:
    of = _small()
    assert [row["name"] for row in details(of, ("thread", 0), 25, -1, 0)["stack"]] == [
        "request",
        "inner",
        "cudaLaunchKernel",
    ]
    assert details(of, ("device", 0), 25, -1, 0) == {"event": [], "launch": [], "capture": [], "stack": []}
    assert details(of, ("stream", 0), 0, 99, 0)["event"] == []


def test_range_is_the_last_part() -> None:
    assert PARTS[-1][0] == RANGE


@pytest.mark.parametrize("of", [trace(), trace(threads=0)])
def test_an_empty_trace_has_no_lanes(of) -> None:
    assert lanes(Attribution(of)) == []
