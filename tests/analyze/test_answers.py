"""What the answers say of small traces: kernels, idle gaps, requests, cold totals, findings, and their options."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.small import call, kernel, span, trace

from tprof.align import AlignOptions, align
from tprof.analyze import Attribution, Options, Result, cold, idle, kernels, requests, summarize
from tprof.model import table

MS = 1_000_000
Row = dict[str, Any]

HOST = [
    span(0, 1_000, "request#a"),
    span(10, 90, "aten::mm", "op", shape_key="[2, 3]"),
    span(12, 80, "model.py(3): f", "python"),
    call(20, 30, correlation=1),
    call(100, 110, correlation=2),
    call(120, 400, "cudaDeviceSynchronize"),
    call(500, 510, correlation=3),
    span(2_000, 3_000, "request#b"),
]
DEVICE = [
    kernel(40, 60, "mm", correlation=1, grid=[1, 1, 1]),
    kernel(120, 160, "mm", correlation=2, grid=[2, 1, 1]),
    kernel(600, 700, "copy", correlation=3, kind="memcpy"),
    kernel(700, 710, "lost"),
]


def attribution(
    host: list[Row] = HOST, device: list[Row] = DEVICE, phases: dict[str, str] | None = None
) -> Attribution:
    return Attribution(align(trace(host, device), AlignOptions(phases or {})))


def asked(question: Any, **options: Any) -> Row:
    result: Result = question(attribution(), Options(**options))
    return result.to_dict()


# ---- kernels


def test_kernels_are_ranked_by_total_with_origin_shapes_and_path() -> None:
    rows = asked(kernels)["kernels"]
    assert [(r["name"], r["calls"], r["total_ns"], r["path"]) for r in rows] == [
        ("copy", 1, 100, "memory"), ("mm", 2, 60, "triton"), ("lost", 1, 10, "triton"),
    ]  # fmt: skip
    mm = rows[1]
    assert (mm["min_ns"], mm["median_ns"], mm["p99_ns"], mm["max_ns"], mm["shapes"]) == (20, 30, 40, 40, 2)
    assert mm["origin"] in ("aten::mm", "request#a")
    assert rows[2]["origin"] is None
    assert sum(r["of_device_share"] for r in rows) == pytest.approx(1)


def test_kernels_of_a_window_begin_in_it_and_top_limits() -> None:
    assert [r["name"] for r in asked(kernels, window=(100, 700))["kernels"]] == ["copy", "mm"]
    assert [r["name"] for r in asked(kernels, top=1)["kernels"]] == ["copy"]
    assert asked(kernels, window=(10_000, 20_000))["kernels"] == []


@pytest.mark.parametrize("n", [1, 2, 99, 100, 101, 1000])
def test_percentile_is_nearest_rank(n: int) -> None:
    device = [kernel(i * 10_000, i * 10_000 + length) for i, length in enumerate(range(n, 0, -1))]
    (row,) = kernels(attribution([], device), Options()).to_dict()["kernels"]
    ordered = sorted(range(1, n + 1))
    assert row["p99_ns"] == ordered[max(-(-99 * n // 100) - 1, 0)]
    assert row["median_ns"] == (ordered[(n - 1) // 2] + ordered[n // 2]) // 2


# ---- idle


def test_gaps_are_listed_longest_first_with_what_ended_them() -> None:
    gaps = asked(idle)["gaps"]
    assert [(g["where"], g["start_ns"], g["end_ns"], g["ended_by"]) for g in gaps] == [
        ("tail", 710, 3_000, None), ("idle", 160, 600, "copy"), ("idle", 60, 120, "mm"), ("lead", 0, 40, "mm"),
    ]  # fmt: skip
    assert gaps[1]["phases"] == {"sync": 240, "host": 100, "launch": 100}
    assert gaps[1]["phase"] == "sync"
    assert all(sum(g["phases"].values()) == g["gap_ns"] == g["end_ns"] - g["start_ns"] for g in gaps)


def test_gaps_are_clipped_to_the_window_and_reach_beyond_the_recording() -> None:
    found = asked(idle, window=(-50, 300))
    (row,) = found["devices"]
    assert (row["lead_ns"], row["idle_ns"], row["tail_ns"]) == (90, 200, 0)
    assert [(g["start_ns"], g["end_ns"]) for g in found["gaps"]] == [(160, 300), (60, 120), (-50, 0), (0, 40)]
    assert {(p["where"], p["phase"]): p["total_ns"] for p in row["phases"]}["lead", "unattributed"] == 50
    assert sum(p["total_ns"] for p in row["phases"]) == 290


def test_shares_of_idle_phases_sum_to_one() -> None:
    (row,) = asked(idle)["devices"]
    for where in ("lead", "idle", "tail"):
        assert sum(p["of_where_share"] for p in row["phases"] if p["where"] == where) == pytest.approx(1)


# ---- requests


def test_requests_are_partitioned_and_limited() -> None:
    first, second = asked(requests)["requests"]
    assert first["phases"] == {"host": 610, "sync": 280, "framework": 70, "launch": 40} | first["phases"]
    assert sum(first["phases"].values()) == first["wall_ns"] == 1_000
    assert first["sync_by_device"] == {"work": 40, "tuning": 0, "idle_or_other": 240}
    assert first["device_by_purpose"] == {"work": 160}
    assert (second["phases"], second["device_by_purpose"]) == ({"host": 1_000}, {})
    assert [r["name"] for r in asked(requests, window=(1_500, 2_500))["requests"]] == ["request#b"]
    assert [r["name"] for r in asked(requests, ranges=("*a",))["requests"]] == ["request#a"]
    assert len(asked(requests, top=1)["requests"]) == 1


def test_sync_is_tax_only_while_devices_do_nothing_but_tune() -> None:
    host = [
        span(0, 1_000, "request#a"), span(10, 60, "tune"), call(20, 30, correlation=1), call(70, 80, correlation=2),
        call(100, 400, "cudaDeviceSynchronize"),
    ]  # fmt: skip
    device = [kernel(90, 300, "t", correlation=1), kernel(250, 350, "w", correlation=2)]
    (row,) = requests(attribution(host, device, {"tune": "autotune"}), Options()).to_dict()["requests"]
    assert row["phases"]["sync"] == 300
    assert row["cold_tax_ns"] == 50 + 150  # the range itself, and the wait until the work began
    assert row["cold_exposed_ns"] == 200
    assert row["sync_by_device"] == {"work": 100, "tuning": 150, "idle_or_other": 50}


def test_sync_is_no_tax_while_another_device_sets_up() -> None:
    host = [
        span(0, 1_000, "request#a"),
        span(10, 60, "tune"),
        call(20, 30, correlation=1),
        span(62, 68, "prepare"),
        call(63, 65, correlation=2),
        call(100, 400, "cudaDeviceSynchronize"),
    ]
    device = [kernel(90, 300, "t", correlation=1), kernel(250, 350, "s", correlation=2, device=1)]
    two = table("devices", {"host": ["", ""], "ordinal": [0, 1], "source": [0, 0]})
    phases = {"tune": "autotune", "prepare": "setup"}
    found = align(replace(trace(host, device), devices=two), AlignOptions(phases))
    (row,) = requests(Attribution(found), Options()).to_dict()["requests"]
    assert row["device_by_purpose"] == {"setup": 100, "tuning": 210}
    assert row["cold_tax_ns"] == 50 + 150  # the range itself, and the wait until the other device began
    assert row["sync_by_device"]["tuning"] == 150


# ---- cold and findings


def test_cold_totals_are_clipped_to_the_window() -> None:
    host = [span(0, 100, "compile it"), span(200, 260, "compile it", thread=1), span(0, 1_000, "all")]
    found = attribution(host, [], {"compile it": "compile"})
    assert cold(found, Options()).to_dict()["cold"]["compile_ns"] == 160
    assert cold(found, Options(window=(50, 210))).to_dict()["cold"]["compile_ns"] == 60
    totals = cold(found, Options(window=(300, 400))).to_dict()["cold"]
    assert (totals["compile_ns"], totals["candidates"], totals["tuning_device_ns"]) == (0, 0, 0)
    assert cold(found, Options()).to_dict()["cold"]["basis"] == "recorded"


def test_findings_are_ranked_and_have_a_denominator() -> None:
    host = [span(0, 10 * MS, "request#a"), span(0, 9 * MS, "compile it"), call(9 * MS, 9 * MS + 10, correlation=1)]
    found = summarize(
        attribution(host, [kernel(9 * MS + 20, 9 * MS + 50, correlation=1)], {"compile it": "compile"}), Options()
    ).to_dict()
    costs = [row["cost_ns"] for row in found["findings"]]
    assert costs == sorted(costs, reverse=True)
    codes = [row["code"] for row in found["findings"]]
    assert codes.count("cold-request") == 1
    assert "compile-in-request" in codes
    assert all(0 <= row["share"] <= 1 for row in found["findings"])


# ---- options


def two_devices() -> Attribution:
    device = [kernel(0, 10), kernel(5, 30, device=1, pid=2)]
    small = trace([], device)
    devices = table(
        "devices", {"host": ["", ""], "pid": [1, 2], "ordinal": [0, 1], "name": ["H200", "L4"], "source": [0, 0]}
    )
    processes = table("processes", {"host": ["", ""], "pid": [1, 2], "rank": [0, 1]})
    return Attribution(replace(align(small), devices=devices, processes=processes))


@pytest.mark.parametrize(
    ("options", "busy"),
    [
        (Options(), [10, 25]),
        (Options(devices=("L*",)), [25]),
        (Options(devices=("1:0",)), [10]),
        (Options(devices=("0", "1")), [10, 25]),
        (Options(ranks=(1,)), [25]),
        (Options(devices=("H*",), ranks=(1,)), []),
    ],
)
def test_devices_and_ranks_are_chosen(options: Options, busy: list[int]) -> None:
    found = two_devices()
    assert [row["busy_ns"] for row in summarize(found, options).to_dict()["devices"]] == busy
    assert [row["total_ns"] for row in kernels(found, options).to_dict()["kernels"]] == ([sum(busy)] if busy else [])


def test_the_first_table_is_a_frame() -> None:
    result = summarize(attribution(), Options())
    assert result.frame["busy_ns"].tolist() == [170]
    assert str(result.frame["busy_ns"].dtype) == "int64[pyarrow]"
