"""From a recorded workload to its answers: what `tprof.trace` wrote, `tprof.load` explains."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

import pytest
from support.skips import needs_triton

import tprof

pytestmark = needs_triton


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo workload, recorded with an empty disk cache, read back."""
    pytest.importorskip("triton")
    from support import record_kernels
    from support.record_demo import demo

    record_kernels.forget(record_kernels.add)  # what other tests have compiled
    record_kernels.forget(record_kernels.pick)
    folder = tmp_path_factory.mktemp("demo")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRITON_CACHE_DIR", str(folder / "cache"))
        demo(folder / "run", nvtx=False)
    return tprof.load(folder / "run")


def test_every_phase_is_recorded_and_a_request_sums_to_its_wall(demo):
    summary = demo.summary().to_dict()
    (row,) = summary["requests"]
    assert summary["cold"]["basis"] == row["basis"] == "recorded"
    assert sum(row["phases"].values()) == row["wall_ns"]
    assert {"compile", "cache", "module_load", "autotune"} <= set(row["phases"])
    assert row["cold_tax_ns"] > row["wall_ns"] / 2


def test_compiles_hits_loads_and_candidates_are_counted(demo):
    cold = demo.cold().to_dict()
    # add twice and pick three times are compiled (its fourth candidate fails before), add is found on disk once
    assert (cold["cold"]["compiles"], cold["cold"]["disk_hits"], cold["cold"]["candidates"]) == (5, 1, 4)
    assert [bool(c["error"]) for c in cold["candidates"]] == [False, True, True, False]
    assert "OutOfResources" in cold["candidates"][1]["error"]
    assert "CompileTimeAssertionFailure" in cold["candidates"][2]["error"]
    assert [c["winner"] for c in cold["candidates"]] == [False, False, False, True]


def test_the_argument_behind_a_new_variant_is_named(demo):
    why = {row["why"] for row in demo.cold().to_dict()["specializations"]}
    assert "n: 1024 is divisible by 16" in why


def test_launches_know_their_shape_and_whether_they_were_cold(demo):
    host = demo.frame("host")
    launches = host[host.kind == "launch"]
    assert Counter(launches.kernel.to_list()) == {"add": 5, "pick": 7}
    assert launches.cold.sum() < len(launches)
    assert launches.shape_key.notna().all()


def test_each_shape_has_a_life_and_pays_for_what_was_cold_for_it(demo):
    found, host = demo.shapes().to_dict(), demo.frame("host")
    rows = found["shapes"]
    assert {row["kernel"] for row in rows} == {"add", "pick"}
    assert {(row["key"], row["basis"]) for row in rows} == {("arguments", "recorded")}
    assert sum(row["calls"] + row["tuning_calls"] for row in rows) == (host.kind == "launch").sum()
    cold = demo.cold().to_dict()["cold"]
    charged = sum(row["cold_ns"] for row in rows) + sum(row["total_ns"] for row in found["uncharged"])
    assert charged == sum(cold[key] for key in cold if key.endswith("_ns") and key != "tuning_device_ns")
    assert [row["candidates"] for row in rows if row["kernel"] == "pick"] == [4]
    (request,) = demo.requests().to_dict()["requests"]
    assert {cause["kernel"] for cause in request["causes"]} == {"pick"}
    assert sum(cause["cold_ns"] for cause in request["causes"]) == request["cold_tax_ns"]
    assert request["misses"] == sum(row["request_misses"] for row in rows)


def test_tasks_and_threads_get_their_own_launches_by_id(tmp_path, stub):
    from support import record_kernels as kernels

    torch = pytest.importorskip("torch")
    x, o = torch.ones(1024), torch.empty(1024)

    def launch(times):
        for _ in range(times):
            kernels.add[(8,)](x, x, o, 1024, B=128)

    async def answer(number):
        with tprof.request("chat", id=f"task {number}"):
            await asyncio.sleep(0.005 * number)
            launch(number)
            await asyncio.sleep(0.005)
            launch(1)

    async def chat():
        await asyncio.gather(*(answer(number) for number in (1, 2, 3)))

    def work(request):
        with request.serve():
            launch(4)

    with tprof.trace(tmp_path / "run", nvtx=False):
        asyncio.run(chat())
        served = tprof.request("batch", id="threads").start()
        threads = [threading.Thread(target=work, args=(served,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        served.end()
        launch(5)  # nobody's
    rows = tprof.load(tmp_path / "run").requests().to_dict()["requests"]
    assert {r["id"]: r["launches"] for r in rows} == {"task 1": 2, "task 2": 3, "task 3": 4, "threads": 8}
    assert all(sum(r["phases"].values()) == r["wall_ns"] for r in rows)
