"""Figures of the pages on little, on much and on hostile data; what they draw of real data is in `test_pages`."""

from __future__ import annotations

import pytest

pytest.importorskip("plotly", reason="the extra `app` is not installed")
from tprof.present import figures_cold, figures_compare, figures_idle, figures_kernels, figures_requests, figures_shapes
from tprof.present.gantt import MOST, Call, Stretch, gantt
from tprof.present.log_axis import decades

BAD = "<b>x</b>"


def _cold(number=0, at=0, wall=10, **rest) -> dict:
    row = {"number": number, "role": "candidate", "kernel": "k", "config": None, "phase": "compile", "what": "ttir",
           "at_ns": at, "wall_ns": wall, "basis": "recorded", "thread": "1/1 main"}  # fmt: skip
    return row | rest


def _step(at, step="call", wall=5, **rest) -> dict:
    return {"kernel": "k", "label": "M=1", "at_ns": at, "step": step, "wall_ns": wall, "stretches": 1,
            "request": None, "basis": "recorded"} | rest  # fmt: skip


_DRAW = (
    figures_cold.waterfall, figures_cold.startup, figures_cold.candidates, figures_idle.by_device, figures_idle.lengths,
    figures_kernels.largest, figures_kernels.durations, figures_requests.latency, figures_shapes.first_and_warm,
    figures_shapes.lives, figures_shapes.concentration, lambda rows: figures_compare.changes(rows, ("part",)),
)  # fmt: skip


@pytest.mark.parametrize("draw", _DRAW)
def test_nothing_at_all(draw) -> None:
    assert draw([]).to_json()


# ---- gantt


def test_a_phase_is_one_trace_and_one_entry_per_basis() -> None:
    rows = [Stretch(0, 0, 5, "compile", "", "recorded"), Stretch(1, 5, 5, "compile", "", "inferred")]
    figure = gantt(rows, [], ["a", "b"])
    assert {t.width for t in figure.data[:2]} == {0.75}
    assert [(t.name, bool(t.showlegend)) for t in figure.data] == [
        ("compile", True), ("compile", False), ("hatched: inferred", True), ("call", False),
    ]  # fmt: skip


def test_only_the_longest_of_many_are_drawn() -> None:
    rows = [Stretch(0, i, i + 1, "compile", "", "recorded") for i in range(MOST + 7)]
    (bar, _) = gantt(rows, [], ["a"]).data
    assert (len(bar.x), min(bar.x)) == (MOST, 8 / 1000)


def test_many_calls_are_drawn_by_webgl_without_words() -> None:
    figure = gantt([], [Call(0, i, "call") for i in range(3000)], ["a"])
    assert (figure.data[-1].type, len(figure.data[-1].x), figure.data[-1].text) == ("scattergl", 3000, ())


def test_names_are_escaped() -> None:
    figure = gantt([Stretch(0, 0, 1, "compile", BAD, "recorded")], [Call(0, 1, BAD)], [BAD])
    assert BAD not in figure.to_json().replace("\\u003c", "<").replace("\\u003e", ">")


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([5], ["1 ns", "10 ns"]),
        ([900, 2_000_000], ["100 ns", "1 us", "10 us", "100 us", "1 ms", "10 ms"]),
        ([3 * 10**9, 10**12], ["1 s", "10 s", "100 s", "1,000 s"]),
    ],
)
def test_a_logarithmic_axis_has_a_tick_per_decade(values, ticks) -> None:
    assert decades(values)["ticktext"] == ticks


# ---- cold start


def test_steps_are_lanes_in_order_of_time() -> None:
    rows = [_cold(0, 0, config="B: 16, num_warps: 4", role="winner"), _cold(1, 10, role="first use"),
            _cold(2, 20, role="other", kernel=None, phase="init"), _cold(3, 30)]  # fmt: skip
    names = figures_cold.waterfall(rows).layout.yaxis.ticktext
    assert list(names) == ["k ✓ B 16, warps 4", "k first use", "init", "k candidate of step 3"]


def test_steps_of_several_processes_or_threads_say_whose_they_are() -> None:
    for other, names in (("2/2 main", ["1 k first use", "2 k first use"]), ("1/3", ["1 k first use", "3 k first use"])):
        rows = [_cold(0, 0, role="first use"), _cold(1, 5, role="first use", thread=other)]
        assert list(figures_cold.waterfall(rows).layout.yaxis.ticktext) == names


def test_the_longest_steps_are_kept() -> None:
    rows = [_cold(i, 10 * i, 1 if i == 3 else 5) for i in range(figures_cold.STEPS + 1)]
    names = figures_cold.waterfall(rows).layout.yaxis.ticktext
    assert len(names) == figures_cold.STEPS
    assert "k candidate of step 3" not in names


def test_a_first_call_is_on_the_lane_of_the_step_before_it() -> None:
    rows = [_cold(0, 0), _cold(1, 100), _cold(2, 200, kernel="other")]
    calls = [_step(at, "cold call") for at in (50, 250)] + [_step(1, "cold call", kernel="unknown")]
    ticks = figures_cold.waterfall(rows, calls).data[-1]
    assert list(ticks.y) == [0, 1]


def test_an_untimed_candidate_is_left_out() -> None:
    row = {"time_ns": 5, "device_mean_ns": None, "spread_ns": None, "winner": None, "config": None, "order": 1}
    figure = figures_cold.candidates([row, row | {"time_ns": None, "order": 0}])
    assert list(figure.layout.yaxis.ticktext) == ["candidate 2"]
    assert list(figure.data[0].x) == [5]


# ---- shapes


def test_cold_steps_of_a_life_do_not_overlap() -> None:
    steps = [_step(0, "compile", 50), _step(10, "autotune", 20), _step(70, "cold call"), _step(80)]
    figure = figures_shapes.lives(steps)
    bars = {t.legendgroup: (t.base[0], t.x[0]) for t in figure.data if t.type == "bar"}
    assert bars == {"compile": (0, 50), "autotune": (50, 20)}
    assert list(figure.data[-1].x) == [70, 80]


def test_what_is_left_out_of_a_life_is_no_call() -> None:
    more = {"kernel": "k", "label": "M=1", "at_ns": 0, "step": "more", "stretches": 3}
    assert list(figures_shapes.lives([_step(0), more]).data[-1].x) == [0]


# ---- compare, idle


def test_growth_and_shrinking_go_their_own_ways() -> None:
    rows = [{"part": "idle.compile", "change_ns": 10_000, "change_share": 0.5},
            {"part": "busy.work", "change_ns": -2_000, "change_share": -0.1},
            {"part": BAD, "change_ns": 1_000, "change_share": None},
            {"part": "idle.host", "change_ns": 900, "change_share": 1091.0}]  # fmt: skip
    figure = figures_compare.changes(rows, ("part",))
    assert list(figure.data[0].x) == [10, -2, 1, 0.9]
    assert list(figure.data[0].text) == ["+10.0 us, +50.0 %", "-2.00 us, -10.0 %", "+1.00 us", "+900 ns, 1,092 x"]
    assert "&lt;b&gt;x&lt;/b&gt;" in figure.layout.yaxis.ticktext[2]


def test_devices_stack_their_phases_in_one_order() -> None:
    rows = [{"device": d, "where": "idle", "phase": phase, "basis": "recorded", "total_ns": 5, "of_wall_share": 0.1}
            for d, phase in (("0", "host"), ("1", "compile"), ("1", "host"))]  # fmt: skip
    figure = figures_idle.by_device(rows)
    assert [bar.legendgroup for bar in figure.data if bar.type == "bar"] == ["compile", "host"]
    assert list(figure.layout.yaxis.ticktext) == ["device 0", "device 1"]
