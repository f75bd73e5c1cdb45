"""Attribution equals a brute-force oracle for any trace and window; nothing is lost, counted twice or negative."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.generate import Example, examples, windows

from tprof.analyze import Attribution, Options, idle, requests, summarize

if TYPE_CHECKING:
    from support.oracle import Figures

Row = dict[str, Any]

lengthy = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
short = settings(lengthy, max_examples=60)


def rows_of(attribution: Attribution, window: tuple[int, int] | None) -> list[Row]:
    return summarize(attribution, Options(window=window)).to_dict()["devices"]


def assert_device(row: Row, expected: Figures) -> None:
    assert row["busy_ns"] == expected.where("busy")
    assert row["idle_ns"] == expected.where("idle")
    assert row["lead_ns"] == expected.where("lead")
    assert row["tail_ns"] == expected.where("tail")
    assert row["span_ns"] == expected.where("busy") + expected.where("idle")
    assert row["busy_by_purpose"] == expected.phases("busy")
    assert row["idle_by_phase"] == expected.phases("idle")
    assert row["wall_by_phase"] == expected.wall()
    assert row["inferred_ns"] == expected.inferred()
    counted = {key: row[key] for key in ("events", "unlinked", "overlaps", "sum_ns")}
    assert counted == {key: getattr(expected, key) for key in counted}


@lengthy
@given(examples(), st.data())
def test_devices_equal_the_oracle(example: Example, data: st.DataObject) -> None:
    attribution, oracle = Attribution(example.trace), example.oracle
    assert attribution.extent == oracle.extent
    for window in (oracle.extent, data.draw(windows(oracle.extent))):
        rows = rows_of(attribution, window)
        assert len(rows) == len(oracle.devices())
        for row, device in zip(rows, oracle.devices(), strict=True):
            assert_device(row, oracle.figures(device, *window))


@short
@given(examples(), st.data())
def test_basis_of_idle_time_equals_the_oracle(example: Example, data: st.DataObject) -> None:
    oracle = example.oracle
    window = data.draw(windows(oracle.extent))
    found = idle(Attribution(example.trace), Options(window=window)).to_dict()
    for row, device in zip(found["devices"], oracle.devices(), strict=True):
        by = oracle.figures(device, *window).by
        assert {(p["where"], p["phase"], p["basis"]): p["total_ns"] for p in row["phases"]} == {
            key: ns for key, ns in by.items() if key[0] != "busy"
        }
        assert {f"{where}_ns": row[f"{where}_ns"] for where in ("idle", "lead", "tail")} == {
            f"{where}_ns": oracle.figures(device, *window).where(where) for where in ("idle", "lead", "tail")
        }


@short
@given(examples(), st.data())
def test_streams_equal_the_oracle(example: Example, data: st.DataObject) -> None:
    oracle = example.oracle
    window = data.draw(windows(oracle.extent))
    for row, device in zip(rows_of(Attribution(example.trace), window), oracle.devices(), strict=True):
        for stream in row["streams"]:
            expected = oracle.stream((stream["pid"], device, stream["context"], stream["stream"]), *window)
            assert {"busy_ns": stream["busy_ns"], "idle_ns": stream["idle_ns"], **stream["hta_wait"]} == expected


@lengthy
@given(examples())
def test_requests_equal_the_oracle(example: Example) -> None:
    rows = requests(Attribution(example.trace), Options()).to_dict()["requests"]
    assert [row["name"] for row in rows] == [example.oracle.host[i].name for i in example.requests]
    for row, at in zip(rows, example.requests, strict=True):
        expected = example.oracle.request(at)
        assert row["phases"] == expected.phases
        assert (row["cold_tax_ns"], row["cold_exposed_ns"]) == (expected.tax, expected.exposed)
        assert row["device_by_purpose"] == expected.device
        assert row["basis"] == ("inferred" if expected.inferred else "recorded")
        assert sum(row["phases"].values()) == row["wall_ns"]
        assert sum(row["sync_by_device"].values()) == row["phases"].get("sync", 0)


@short
@given(examples(), st.data())
def test_a_window_cut_in_two_adds_up(example: Example, data: st.DataObject) -> None:
    attribution = Attribution(example.trace)
    low, high = data.draw(windows(example.oracle.extent))
    middle = data.draw(st.integers(low, high))
    whole, left, right = (rows_of(attribution, w) for w in ((low, high), (low, middle), (middle, high)))
    for of_whole, of_left, of_right in zip(whole, left, right, strict=True):
        for key in ("busy_ns", "idle_ns", "lead_ns", "tail_ns", "sum_ns", "span_ns", "inferred_ns"):
            assert of_whole[key] == of_left[key] + of_right[key]
        for key in ("busy_by_purpose", "idle_by_phase", "wall_by_phase"):
            assert of_whole[key] == added(of_left[key], of_right[key])


def added(left: dict[str, int], right: dict[str, int]) -> dict[str, int]:
    return {key: left.get(key, 0) + right.get(key, 0) for key in left | right}
