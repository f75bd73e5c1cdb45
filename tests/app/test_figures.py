"""Figures hold what the rows say: bars sum to their whole, colours are fixed, nothing breaks on little data."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

import tprof
from tprof.present.colours import PHASE, PURPOSE

if TYPE_CHECKING:
    from pathlib import Path

figures = pytest.importorskip("tprof.present.figures", reason="the extra `app` is not installed")


@pytest.fixture(scope="module", params=["h200-torch.json.gz", "h200-nsight.sqlite.gz"])
def trace(request: pytest.FixtureRequest, sample_traces: Path) -> tprof.Trace:
    return tprof.load(sample_traces / request.param)


def _wall(trace: tprof.Trace) -> Any:
    said = trace.summary().to_dict()
    return figures.wall(said["devices"], trace.summary().tables["wall"], said["window"]["wall_ns"])


def _bars(figure: Any) -> list[Any]:
    return [trace for trace in figure.data if trace.type == "bar" and trace.customdata is not None]


def _sums(figure: Any) -> dict[int, float]:
    sums: dict[int, float] = defaultdict(float)
    for bar in _bars(figure):
        for y, x in zip(bar.y, bar.x, strict=True):
            sums[y] += x
    return sums


def _ns(figure: Any) -> int:
    return sum(int(row[0].replace(",", "")) for bar in _bars(figure) for row in bar.customdata)


def _budget(**given: Any) -> dict[str, Any]:
    row = {
        "name": "request",
        "wall_ns": 100,
        "cold_tax_ns": 60,
        "cold_exposed_ns": 50,
        "basis": "recorded",
        "phases": {"compile": 40, "sync": 50, "host": 10},
        "basis_by_phase": {"compile": "recorded", "sync": "recorded", "host": "recorded"},
        "sync_by_device": {"work": 30, "tuning": 20, "idle_or_other": 0},
    }
    return {**row, **given}


def test_wall_sums_to_the_window(trace: tprof.Trace) -> None:
    figure = _wall(trace)
    assert _sums(figure) == {0: pytest.approx(100, abs=1e-9)}
    assert _ns(figure) == trace.summary().to_dict()["window"]["wall_ns"]


def test_devices_stack_in_one_order_whatever_each_has() -> None:
    rows = [
        {"device": d, "part": part, "basis": "recorded", "total_ns": 5, "of_wall_share": 0.5}
        for d, part in (("0", "idle.host"), ("0", "busy.work"), ("1", "idle.compile"), ("1", "busy.tuning"))
    ]
    figure = figures.wall([{"device": "0", "name": None}, {"device": "1", "name": "x"}], rows, 10)
    assert [bar.legendgroup for bar in _bars(figure)] == ["work", "tuning", "compile", "host"]
    assert _sums(figure) == {0: 100.0, 1: 100.0}


def test_wall_tells_inferred_from_recorded(trace: tprof.Trace) -> None:
    shapes = {(bar.name, bar.marker.pattern.shape) for bar in _bars(_wall(trace))}
    assert {("compile", "/"), ("tuning", "/"), ("host code", "")} <= shapes
    assert "hatched: inferred" in {bar.name for bar in _wall(trace).data}


def test_requests_sum_to_their_wall_time(trace: tprof.Trace) -> None:
    rows = trace.summary().to_dict()["requests"]
    for normalise, wholes in ((True, [100.0] * len(rows)), (False, [row["wall_ns"] / 1e9 for row in rows])):
        sums = _sums(figures.requests(rows, normalise=normalise))
        assert [sums[bar] for bar in range(len(rows))] == pytest.approx(wholes)


def test_idle_draws_every_row(trace: tprof.Trace) -> None:
    rows = trace.idle().tables["phases"]
    assert _ns(figures.idle(rows)) == sum(row["total_ns"] for row in rows)


def test_colours_are_those_of_the_phase(trace: tprof.Trace) -> None:
    rows = trace.summary().to_dict()["requests"]
    for figure in (_wall(trace), figures.requests(rows), figures.idle(trace.idle().tables["phases"])):
        for bar in _bars(figure):
            assert bar.marker.color == (PHASE | PURPOSE)[bar.legendgroup]


def test_a_name_is_in_the_legend_once(trace: tprof.Trace) -> None:
    listed = [bar.name for bar in _wall(trace).data if bar.showlegend]
    assert len(listed) == len(set(listed))


def test_waiting_for_tuning_counts_as_cold_and_comes_before_other_waiting() -> None:
    bars = [
        (bar.legendgroup, bar.customdata[0][0], "only tuned" in bar.hovertemplate)
        for bar in _bars(figures.requests([_budget()]))
    ]
    assert bars == [("compile", "40", False), ("sync", "20", True), ("sync", "30", False), ("host", "10", False)]


def test_the_tick_ends_the_exposed_part() -> None:
    tick = figures.requests([_budget(), _budget(cold_tax_ns=0, cold_exposed_ns=0)]).data[-1]
    assert (list(tick.x), list(tick.y)) == ([50.0], [0])


def test_unattributed_is_crossed() -> None:
    figure = figures.requests(
        [_budget(phases={"unattributed": 100}, sync_by_device={}, cold_tax_ns=0, cold_exposed_ns=0)]
    )
    assert [bar.marker.pattern.shape for bar in _bars(figure)] == ["x"]
    assert "crossed: unattributed" in {bar.name for bar in figure.data}


def test_or_load_renames_compile() -> None:
    names = [bar.name for bar in _bars(figures.requests([_budget()], or_load=True))]
    assert names[0] == "compile or load"


def test_only_phases_that_were_inferred_are_hatched() -> None:
    phases = {"phases": {"compile": 40, "module_load": 20, "host": 40}}
    known = {"basis_by_phase": {"compile": "recorded", "module_load": "inferred", "host": "inferred"}}
    bars = _bars(figures.requests([_budget(basis="inferred", **phases, **known)]))
    found = {bar.name: bar.marker.pattern.shape for bar in bars}
    assert (found["compile"], found["module load"]) == ("", "/")


def test_nothing_at_all() -> None:
    assert not _bars(figures.wall([], [], 0))
    assert not _bars(figures.requests([]))
    assert not _bars(figures.idle([]))


def test_one_event_and_a_window_of_no_length() -> None:
    device = {"device": "0", "name": None}
    row = {"device": "0", "part": "busy.work", "basis": "recorded", "total_ns": 7, "of_wall_share": 1.0}
    assert _sums(figures.wall([device], [row], 7)) == {0: 100.0}
    assert _sums(figures.wall([device], [], 0)) == {}
    assert _sums(figures.requests([_budget(wall_ns=0, phases={}, sync_by_device={})])) == {}


def test_names_are_escaped_and_shortened() -> None:
    figure = figures.requests([_budget(name="<b>x</b>"), _budget(name="y" * 100)])
    first, second = figure.layout.yaxis.ticktext
    assert first == "&lt;b&gt;x&lt;/b&gt;"
    assert len(second) == 28
