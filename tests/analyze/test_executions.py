from __future__ import annotations

from itertools import pairwise

import pytest
from support.small import call, kernel, trace

import tprof
from tprof.align import align
from tprof.analyze import Attribution, Options, idle, kernels

US = 1_000


def _asked(device, *names) -> dict:
    host = [call(10 * i, 10 * i + 5, correlation=i) for i in range(len(device))]
    linked = [{**row, "correlation": i} for i, row in enumerate(device)]
    return kernels(Attribution(align(trace(host, linked))), Options(kernels=names)).tables


def test_launches_are_grouped_by_what_they_were_launched_with() -> None:
    one = {"grid": [2, 1, 1], "block": [128, 1, 1], "registers": 32, "shared_bytes": 0}
    tables = _asked([
        kernel(1_000, 1_010, "k", **one), kernel(2_000, 2_030, "k", **one),
        kernel(3_000, 3_100, "k", **one | {"registers": 64}), kernel(4_000, 4_500, "other", **one),
    ], "k")  # fmt: skip
    assert [(r["registers"], r["grid"], r["calls"], r["total_ns"], r["median_ns"]) for r in tables["launches"]] == [
        (64, "2x1x1", 1, 100, 100), (32, "2x1x1", 2, 40, 20),
    ]  # fmt: skip
    assert [row["name"] for row in tables["kernels"]] == ["k"]


def test_what_the_producer_does_not_say_is_null() -> None:
    (row,) = _asked([kernel(1_000, 1_010, "k")], "k")["launches"]
    assert (row["grid"], row["block"], row["registers"], row["shared_bytes"]) == (None, None, None, None)


def test_durations_hold_every_execution_once() -> None:
    lengths = [1, 10, 11, 1_000, 1_000]
    rows = _asked([kernel(10_000 * i, 10_000 * i + n, "k") for i, n in enumerate(lengths, 1)], "k")["durations"]
    assert (sum(row["calls"] for row in rows), sum(row["total_ns"] for row in rows)) == (5, sum(lengths))
    assert [row["calls"] for row in rows if row["from_ns"] <= 1_000 < row["below_ns"]] == [2]
    assert all(low["below_ns"] == high["from_ns"] for low, high in pairwise(rows))
    assert all(row["work"] == row["calls"] for row in rows)


def test_an_empty_execution_is_counted() -> None:
    (row,) = _asked([kernel(1_000, 1_000, "k")], "k")["durations"]
    assert (row["calls"], row["total_ns"]) == (1, 0)


def test_a_kernel_that_did_not_run() -> None:
    tables = _asked([kernel(1_000, 1_010, "k")], "q*")
    assert all(not rows for rows in tables.values())


def test_without_a_name_there_are_no_details() -> None:
    assert set(_asked([kernel(1_000, 1_010, "k")])) == {"kernels", "paths"}


# ---- lengths of gaps


def test_gaps_by_decade_of_their_length() -> None:
    host = [
        call(0, 10),
        call(20, 30, correlation=1),
        call(1_050, 1_060, correlation=2),
        call(1_070, 1_090, correlation=3),
    ]
    device = [kernel(40, 50, correlation=1), kernel(1_065, 1_066, correlation=2), kernel(1_095, 1_096, correlation=3)]
    result = idle(Attribution(align(trace(host, device))), Options())
    rows = result.tables["lengths"]
    assert [(r["from_ns"], r["below_ns"], r["gaps"], r["total_ns"]) for r in rows] == [
        (10, 100, 2, 40 + 29), (1_000, 10_000, 1, 1_015),
    ]  # fmt: skip
    assert sum(row["of_gaps_share"] for row in rows) == pytest.approx(1)


@pytest.mark.parametrize("window", [None, (2_000_000_000, 5_000_000_000)])
@pytest.mark.parametrize("name", ["h200-torch.json.gz", "h200-nsight.sqlite.gz"])
def test_lengths_partition_the_idle_time(sample_traces, name, window) -> None:
    trace = tprof.load(sample_traces / name)
    low = trace.attribution.extent[0]
    asked = Options(window=window and (low + window[0], low + window[1]))
    tables = trace.idle(asked).tables
    for phase in {row["phase"] for row in tables["phases"]}:
        by_phase = sum(row["total_ns"] for row in tables["phases"] if row["phase"] == phase)
        assert sum(row[f"{phase}_ns"] for row in tables["lengths"]) == by_phase
    inferred = sum(row["total_ns"] for row in tables["phases"] if row["basis"] == "inferred")
    assert sum(row["inferred_ns"] for row in tables["lengths"]) == inferred
    assert all(
        row["from_ns"] * row["gaps"] <= row["total_ns"] < row["below_ns"] * row["gaps"] for row in tables["lengths"]
    )
