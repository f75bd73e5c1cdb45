"""Why winners win, whether they do, and whether a search was worth its time; and occupancy by NVIDIA's rules."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from support.runs import Writer, run_json
from support.small import call, kernel, span, trace

import tprof
from tprof.align import AlignOptions, align
from tprof.analyze import Attribution, Options
from tprof.analyze.autotune import autotune
from tprof.analyze.occupancy import occupancy, waves
from tprof.kernelspec import Cost
from tprof.model import table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tprof.facade import Trace

MS = 1_000_000
Row = dict[str, Any]
GPU = {"ordinal": 0, "name": "NVIDIA H200", "uuid": "u", "capability": 90, "memory_bytes": 1}


# ---- occupancy


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "expected"),
    [
        ((9, 0), 256, 115, 98_304, (2, "registers and shared memory", 0.25)),
        ((9, 0), 128, 59, 24_576, (8, "registers", 0.5)),
        ((9, 0), 256, 32, 0, (8, "threads and registers", 1.0)),
        ((8, 0), 256, 64, 48 * 1024, (3, "shared memory", 0.375)),
        ((8, 0), 1024, 32, 0, (2, "threads and registers", 1.0)),
        ((7, 0), 256, 32, 48 * 1024, (2, "shared memory", 0.25)),
        ((7, 5), 1024, 64, 0, (1, "threads and registers", 1.0)),
        ((8, 6), 32, 16, 0, (16, "blocks", 16 / 48)),
        ((12, 0), 32, None, None, (24, "blocks", 0.5)),
        ((9, 0), 1024, 128, 0, (0, "registers", 0.0)),
    ],
)
def test_occupancy(capability, threads, registers, shared, expected):
    found = occupancy(capability, threads, registers, shared)
    assert found is not None
    assert (found.blocks, found.limited_by, found.share) == expected


def test_an_unknown_capability_is_not_guessed():
    assert occupancy((99, 0), 128, 32, 0) is None
    assert waves(10, 0, 132) is None
    assert waves(132, 2, 132) == 0.5


# ---- one search


def searched(
    folder: Path, timings: Sequence[Sequence[float] | None], keys: Sequence[int] = (512,), calls: int = 0
) -> Trace:
    """A search over tiles of 32, 64, … per value of M: each candidate is launched once, and the key `calls` times."""
    w = Writer()
    w.lines.append({"type": "devices", "devices": [GPU]})
    w.kernel(1, "mm")
    t = 0
    for number, m in enumerate(keys, 1):
        w.shape(number, 1, t, grid=(m // 8, 2), x={"dtype": "float16", "shape": [m, 64], "stride": [64, 1]}, M=m)
        search = w.begin("autotune", "autotune", "mm", t, configs=len(timings), key_names=["M"])
        for i, ms in enumerate(timings):
            text = f"B: {32 << i}, num_warps: {4 << i}, num_stages: 2"
            c = w.begin("candidate", "autotune", "mm", t, parent=search, text=text, config={"B": 32 << i})
            loaded = {"registers": 32 * (i + 1), "spills": 4 * i}
            w.span("load", "module_load", "mm", t, t + MS, parent=c, kernel=1, hash="h", done=loaded)
            w.launch(t + 2 * MS, t + 2 * MS + 10, number, span=c)
            w.end(c, t + 10 * MS, timings_ms=ms, **({} if ms else {"failed": "OutOfResources"}))
            t += 10 * MS
        best = min((ms[0], i) for i, ms in enumerate(timings) if ms)[1]
        w.end(search, t, key=[str(m), "torch.float16"], best="?", config={"B": 32 << best})
        for i in range(calls):
            w.launch(t + 1_000 * i, t + 1_000 * i + 10, number)
        t += 10 * MS
    run_json(folder)
    return tprof.load(w.write(folder), cache=False)


SHARP = ([0.030, 0.029, 0.031], [0.010, 0.0099, 0.0101], [0.020, 0.019, 0.021], None)


def test_candidates_are_ranked_with_what_they_are(tmp_path):
    rows = searched(tmp_path, SHARP).autotune().payload["candidates"]
    assert [(r["rank"], r["config"][:5], r["time_ns"]) for r in rows] == [
        (1, "B: 64", 10_000), (2, "B: 12", 20_000), (3, "B: 32", 30_000), (4, "B: 25", None),
    ]  # fmt: skip
    best = rows[0]
    assert (best["threads"], best["blocks"], best["registers"], best["spills"]) == (256, 128, 64, 4)
    assert (best["blocks_per_sm"], best["limited_by"], best["occupancy_share"]) == (4, "registers", 0.5)
    assert (best["spread_ns"], best["winner"], best["waves"]) == (200, True, None)  # nobody said how many SMs there are
    assert rows[3]["error"] == "OutOfResources"


def test_the_winner_is_explained_by_what_it_has_better_than_the_next(tmp_path):
    (row,) = searched(tmp_path, SHARP).autotune().payload["tunings"]
    assert (row["key"], row["candidates"], row["failed"], row["winner_ns"]) == ("M=512", 4, 1, 10_000)
    assert (row["margin_share"], row["tie"], row["verdict"]) == (0.5, False, None)
    assert row["why"] == (
        "4 spilled registers instead of 8; 64 registers a thread instead of 96; "
        "4 blocks on a multiprocessor instead of 1 (limited by registers)"
    )


def test_a_margin_within_the_spread_is_a_tie(tmp_path):
    (row,) = searched(tmp_path, ([0.0100, 0.0095, 0.0105], [0.0104, 0.0101, 0.0107])).autotune().payload["tunings"]
    assert row["tie"] is True
    assert "a tie with the next" in row["verdict"]


ALIKE = tuple([ms, ms, ms] for ms in (0.100, 0.101, 0.102, 0.103))


@pytest.mark.parametrize(
    ("ceiling", "verdict"),
    [
        (None, "all alike: one fixed configuration saves the search"),
        (15e9, "all alike: one fixed configuration saves the search"),
        (40e9, "all alike and poor, at 25% of memory's ceiling: the access pattern, not the tile, is the problem"),
    ],
)
def test_alike_candidates_are_poor_only_against_a_ceiling(tmp_path, ceiling, verdict):
    found = searched(tmp_path, ALIKE)
    costs = {"mm": lambda key: Cost(1_000 * int(key["M"]), 488_000, 2_000)}
    result = autotune(found.attribution, Options(), costs, ceiling)
    assert result.payload["tunings"][0]["verdict"] == verdict
    best = result.payload["candidates"][0]
    assert (best["bytes_per_s"], best["operations_per_s"]) == (1e10, 2e7)


def test_three_alike_candidates_say_nothing(tmp_path):
    assert searched(tmp_path, ALIKE[:3]).autotune().payload["tunings"][0]["verdict"] is None


# ---- what searches cost and win


def test_a_search_pays_after_enough_calls(tmp_path):
    result = searched(tmp_path, SHARP, keys=(512, 1024), calls=3).autotune().payload
    first = result["tunings"][0]
    assert (first["saved_per_call_ns"], first["calls"], first["saved_ns"]) == (20_000, 3, 60_000)
    assert (first["wall_ns"], first["break_even_calls"]) == (40 * MS, 2_000)
    (row,) = result["kernels"]
    assert (row["tunings"], row["keys"], row["tuning_ns"], row["calls"]) == (2, 2, 80 * MS, 6)
    assert (row["most_values_of"], row["values"], row["useful"]) == ("M", 2, 1)
    assert row["verdict"].startswith("has not paid for itself")


def test_a_search_that_paid_says_so(tmp_path):
    (row,) = searched(tmp_path, SHARP, calls=2_000).autotune().payload["kernels"]
    assert (row["saved_ns"], row["verdict"]) == (40 * MS, "paid for itself")


# ---- without a recorder


def plain(benchmarked: Sequence[tuple[int, int]]) -> Attribution:
    """Candidates that a profiler's trace shows by their launches: (device time, blocks) of each."""
    host, device, rows = [span(0, 100 * MS, "tune it")], [], []
    for i, (ns, blocks) in enumerate(benchmarked):
        t = 10 * MS * i
        host.append(call(t, t + 10, correlation=i + 1))
        sizes = {"grid": [blocks, 1, 1], "block": [128, 1, 1], "registers": 32, "shared_bytes": 0}
        device.append(kernel(t + 20, t + 20 + ns, "mm", correlation=i + 1, **sizes))
        rows.append({"start_ns": t, "end_ns": t + 10 * MS, "launches": 1, "device_ns": ns})
    columns = {key: [row[key] for row in rows] for key in rows[0]} | {"thread": 0, "kernel": "mm", "basis": "inferred"}
    found = replace(trace(host, device), candidates=table("candidates", columns, len(rows)))
    gpus = [{"name": "NVIDIA H200", "sm_count": 132, "major": 9, "minor": 0}]
    return Attribution(align(replace(found, meta={"gpus": gpus}), AlignOptions({"tune it": "autotune"})))


def test_a_plain_trace_ranks_by_device_time_and_does_not_guess_keys():
    found = autotune(plain([(30_000, 4_224), (20_000, 2_112)]), Options()).payload
    (row,) = found["tunings"]
    assert (row["key"], row["calls"], row["tie"], row["basis"]) == (None, None, None, "inferred")
    assert (
        row["why"] == "1 waves over the device instead of 2; 2,112 blocks in the grid (each does more) instead of 4,224"
    )
    best = found["candidates"][0]
    assert (best["time_ns"], best["blocks_per_sm"], best["waves"]) == (20_000, 16, 1.0)
    assert found["kernels"][0]["verdict"] is None


def test_a_grid_that_cannot_fill_the_device_is_named():
    (row,) = autotune(plain([(30_000, 4_224), (20_000, 528)]), Options()).payload["tunings"]
    assert row["verdict"] == "the grid fills 25% of the device: smaller tiles or split-K would spread it"


def test_a_window_keeps_the_searches_that_end_in_it():
    found = plain([(30_000, 64), (20_000, 32)])
    assert autotune(found, Options(window=(0, 15 * MS))).payload["tunings"] == []
    assert len(autotune(found, Options(window=(0, 20 * MS))).payload["tunings"]) == 1


@pytest.mark.parametrize("file", ["h200-nsight.sqlite.gz", "h200-torch.json.gz"])
def test_profilers_say_how_many_multiprocessors_there_are(sample_traces, file):
    found = tprof.load(sample_traces / file).autotune().payload
    assert [(row["kernel"], row["candidates"], row["key"]) for row in found["tunings"]] == [("matmul", 6, None)] * 3
    best = found["candidates"][0]
    assert best["waves"] == pytest.approx(best["blocks"] / (132 * best["blocks_per_sm"]))
    assert all(row["verdict"].startswith("the grid fills ") for row in found["tunings"])
