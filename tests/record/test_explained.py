"""What a recorded cold start is explained by: three starts of one small service, on one disk cache."""

from __future__ import annotations

import json
import time

import pytest
from support.skips import needs_triton

import tprof

pytestmark = needs_triton
LENGTHS = (512, 2048, 777)
BENCH_S = 0.1  # long against a lookup on disk, as on a GPU


def serve(out, *, lengths=LENGTHS):
    """A start: `ready`, then a request of each length, whose kernel is tuned with the length in the key."""
    import torch
    from support import record_kernels as kernels
    from support.record_demo import SHARED

    from tprof.testing.stub import stub_driver

    def bench(call, quantiles=None):
        call()
        time.sleep(BENCH_S)
        bench.ms -= 0.1
        return [bench.ms] * 3

    bench.ms = 1.0
    x, o = torch.ones(4096), torch.empty(4096)
    with stub_driver(max_shared_mem=SHARED):  # Triton remembers the first that it hears of
        kernels.forget(kernels.pick)
        tuner = kernels.tuned((128, 0, 4), (256, 0, 4))
        tuner.do_bench = bench
        with tprof.trace(out, nvtx=False):
            with tprof.annotate("load weights"):
                time.sleep(0.01)
            tprof.ready()
            for i, length in enumerate(lengths):
                with tprof.request("generate", id=f"L={length} #{i}"):
                    tuner[lambda meta, n=length: (-(-n // meta["B"]),)](x, o, length)
        kernels.forget(kernels.pick)  # for the next test


@pytest.fixture(scope="module")
def starts(tmp_path_factory):
    """Run directories: a cold start, one from a warm disk, and one with another variable of Triton's cache key."""
    pytest.importorskip("triton")
    folder = tmp_path_factory.mktemp("starts")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(folder / "cache"))
        serve(folder / "cold")
        serve(folder / "disk-warm")
        with patch.context() as planted:  # as Triton up to 3.7 has another, where other kernels ran before
            planted.setattr("support.record_kernels.pick.hash", "0" * 64)
            planted.setattr("triton.__version__", "3.6.0")
            serve(folder / "other-order", lengths=LENGTHS[:1])
        patch.setenv("TRITON_DISABLE_LINE_INFO", "1")
        serve(folder / "changed", lengths=LENGTHS[:1])
    return folder


@pytest.fixture(scope="module")
def cold(starts):
    return tprof.load(starts / "cold").cold().to_dict()


def test_the_argument_that_lost_its_divisibility_made_the_second_set_of_compiles(cold):
    why = [row["why"] for row in cold["specializations"]]
    assert why == ["first in the process", "B: 128 -> 256", *["n: 777 is not divisible by 16"] * 2]
    assert [row["request_id"] for row in cold["specializations"]] == ["L=512 #0"] * 2 + ["L=777 #2"] * 2


def test_the_third_length_compiles_nothing_and_is_tuned_again_because_it_is_in_the_key(cold):
    assert [row["why"] for row in cold["tunings"]] == ["first key in the process", "n: 512 -> 2048", "n: 2048 -> 777"]
    second = cold["tunings"][1]
    assert (second["request_id"], second["compile_ns"], second["candidates"]) == ("L=2048 #1", 0, 2)
    assert not [use for use in cold["first_uses"] if use["request_id"] == "L=2048 #1"]


def test_a_search_tells_its_winner_and_by_how_much(cold):
    first = cold["tunings"][0]
    assert (first["best"][:6], first["median_ns"]) == ("B: 256", 800_000)
    assert first["margin_share"] == pytest.approx(1 - 0.8 / 0.9)
    assert first["wall_ns"] > first["compile_ns"] + 2 * BENCH_S * 1e9


def test_each_first_use_has_its_stages_its_variant_and_who_asked(cold):
    for use in cold["first_uses"]:
        assert use["compile_ns"] > use["ttir_ns"] + use["ttgir_ns"] + use["llir_ns"] + use["ptx_ns"] + use["cubin_ns"]
        assert use["source"].partition(":")[0].endswith("record_kernels.py")
        assert use["binary_bytes"] > 0
        assert any(frame.endswith(" serve") for frame in use["stack"])
        assert (use["request"], use["after_ready"], use["cache_hit"]) == ("generate", True, False)
    assert all(c["compile_ns"] > 0 for c in cold["candidates"][:2])


def test_a_start_from_a_warm_disk_spends_most_of_its_first_request_tuning(starts):
    trace = tprof.load(starts / "disk-warm")
    totals = trace.cold().to_dict()["cold"]
    assert (totals["compiles"], totals["disk_hits"]) == (0, 4)
    first = trace.requests().to_dict()["requests"][0]
    assert first["phases"]["autotune"] > first["wall_ns"] / 2


def test_two_starts_tune_the_same_keys(starts):
    rows = tprof.load(starts / "cold", starts / "disk-warm").cold().to_dict()["tunings"]
    assert [row["repeats"] for row in rows] == [0, 0, 0, 1, 1, 1]


def test_the_variable_behind_a_cache_miss_is_named_with_both_its_values(starts):
    result = tprof.load(starts / "cold", starts / "changed").cold().to_dict()
    (row,) = result["cache_misses"]
    assert (row["part"], row["before"], row["after"], row["variants"]) == (
        "environment TRITON_DISABLE_LINE_INFO", "unset", "true", 2,
    )  # fmt: skip


def test_a_key_that_depends_on_what_ran_before_is_told_from_an_edit(starts):
    result = tprof.load(starts / "cold", starts / "other-order").cold().to_dict()
    (row,) = result["cache_misses"]
    assert (row["part"], row["after"], row["variants"]) == ("order of first uses (old Triton)", "0" * 12, 2)


def test_a_cache_that_was_used_missed_nothing(starts):
    assert tprof.load(starts / "cold", starts / "disk-warm").cold().to_dict()["cache_misses"] == []


def test_start_up_is_a_partition_until_ready(starts):
    trace = tprof.load(starts / "cold")
    rows = trace.cold().to_dict()["startup"]
    (ready,) = [r for r in trace.startup.to_pylist() if r["kind"] == "ready"]
    assert sum(r["total_ns"] for r in rows) == ready["start_ns"] - trace.processes["start_ns"][0].as_py()
    by_part = {r["part"]: r for r in rows}
    assert {"unattributed", "tprof itself", "load weights"} <= set(by_part)
    assert by_part["load weights"]["total_ns"] > 10_000_000


def test_one_kernel_can_be_asked_for(starts):
    trace = tprof.load(starts / "cold")
    mine, others = (trace.cold(tprof.analyze.Options(kernels=(glob,))).to_dict() for glob in ("p*", "q*"))
    assert [len(mine[key]) for key in ("kernels", "specializations", "tunings", "candidates")] == [1, 4, 3, 6]
    assert not any(others[key] for key in ("phases", "kernels", "specializations", "tunings", "candidates", "startup"))


def test_the_page_of_the_command_fits_and_tells_why(starts, capsys, monkeypatch):
    main = pytest.importorskip("tprof.cli.entry", reason="the command line is not installed here").main
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["cold", str(starts / "cold"), str(starts / "changed")]) == 0
    page = capsys.readouterr().out
    assert max(map(len, page.splitlines())) <= 100
    for text in ("Start-up until ready", "n: 777 is not divisible by 16", "n: 2048 -> 777", "TRITON_DISABLE_LINE_INFO"):
        assert text in page
    assert "Candidates timed" not in page  # the searches say it, and `--kernel` more
    assert main(["cold", str(starts / "cold"), "--kernel", "pick"]) == 0
    assert "Candidates timed" in capsys.readouterr().out
    assert main(["cold", str(starts / "cold"), "--kernel", "peck"]) == 4
    assert "nothing was cold for a kernel peck; kernels that were: pick" in capsys.readouterr().err


def test_json_has_every_key(starts, capsys):
    main = pytest.importorskip("tprof.cli.entry", reason="the command line is not installed here").main
    assert main(["cold", str(starts / "cold"), "--format", "json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) >= {
        "cold", "phases", "kernels", "first_uses", "candidates", "specializations", "tunings", "cache_misses",
        "recompiles", "startup", "spans", "graph_caches", "selections",
    }  # fmt: skip
