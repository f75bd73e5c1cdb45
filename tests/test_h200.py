"""One cold start on an H200, read from what each of two profilers recorded: the acceptance figures.

`truth.json` holds brute-force values; `*.spans.json` what the process measured of itself. The hand-made ranges that are
in one of the files (`mm`, `autotune_candidate …`) may help nobody but the tests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import tprof.facade
from tprof.align import align
from tprof.model import Trace, codes, ints
from tprof.read import read_file

if TYPE_CHECKING:
    from pathlib import Path

COLD_REQUESTS = (0, 2, 4)
Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One recording and what is known of it otherwise."""

    format: str
    raw: Trace
    trace: tprof.facade.Trace
    truth: Row
    measured: list[Row]  # what the process itself measured

    @cached_property
    def summary(self) -> Row:
        return self.trace.summary().to_dict()

    @cached_property
    def cold(self) -> Row:
        return self.trace.cold().to_dict()

    def kernels(self, named: str) -> dict[str, int]:
        """Executions of a kernel by purpose."""
        found: dict[str, int] = {}
        for row in self.trace.kernels().to_dict()["kernels"]:
            if named in row["name"]:
                found[row["purpose"]] = found.get(row["purpose"], 0) + row["calls"]
        return found

    def first_calls(self, request: int) -> int:
        """Summed time of a request's mm, sm and compile_mlp, ns."""
        figures = self.truth["requests"][request]
        return figures["mm_ns"] + figures["sm_ns"] + figures["compile_mlp_ns"]

    def compile_and_load(self) -> list[int]:
        """What the process measured for each compile of `matmul`: its stages and its module load, ns."""
        compiles = [1000 * stages(s) for s in self.measured if s["kind"] == "compile" and s["name"] == "matmul"]
        loads = [s["t1"] - s["t0"] for s in self.measured if s["kind"] == "module_load" and s["name"] == "matmul"]
        return [c + n for c, n in zip(compiles, loads, strict=True)]


def stages(span: Row) -> int:
    """Time of a compile's stages, us."""
    times = span["times"]
    return times["ir_init"] + times["store"] + sum(us for _, us in times["lowering"])


def aligned(raw: Trace) -> tprof.facade.Trace:
    trace = align(raw)
    return tprof.facade.Trace(**{name: getattr(trace, name) for name in Trace.__dataclass_fields__})


def load(traces: Path, kind: str, file: str, measured: str) -> Run:
    folder = traces / "h200-cold-start"
    if not folder.is_dir():
        pytest.skip("the recordings of the H200 are absent")
    raw = read_file(folder / file)
    truth = json.loads((folder / "truth.json").read_text())[kind]
    return Run(kind, raw, aligned(raw), truth, json.loads((folder / measured).read_text())["spans"])


@pytest.fixture(scope="module")
def nsight(traces: Path) -> Run:
    return load(traces, "nsight", "nsight_systems_2025.3.sqlite.gz", "nsys_run.spans.json")


@pytest.fixture(scope="module")
def torch(traces: Path) -> Run:
    return load(traces, "torch", "torch_profiler_2.11.pt.trace.json.gz", "torch_profiler_run.spans.json")


@pytest.fixture(scope="module", params=["nsight", "torch"])
def run(request: pytest.FixtureRequest) -> Run:
    return request.getfixturevalue(request.param)


def test_device_figures_equal_the_truth(run: Run) -> None:
    (row,) = run.summary["devices"]
    keys = ("span_ns", "busy_ns", "idle_ns", "sum_ns")
    assert {key: row[key] for key in keys} == {key: run.truth[key] for key in keys}
    assert row["events"] == sum(run.truth["device_ops"].values())
    assert (row["overlaps"], row["unlinked"]) == (0, run.truth["launches_missing"])


def test_figures_are_conserved(run: Run) -> None:
    (row,) = run.summary["devices"]
    assert sum(row["busy_by_purpose"].values()) == row["busy_ns"]
    assert sum(row["idle_by_phase"].values()) == row["idle_ns"]
    assert sum(row["wall_by_phase"].values()) == run.summary["window"]["wall_ns"]
    for request in run.summary["requests"]:
        assert sum(request["phases"].values()) == request["wall_ns"]


def test_matmul_of_candidates_is_tuning_and_eight_serve(run: Run) -> None:
    tuned = {"nsight": 22_461, "torch": 20_226}[run.format]
    assert run.kernels("matmul") == {"tuning": tuned, "work": 8}
    assert run.kernels("softmax") == {"work": 8}


def test_every_flush_is_tuning(run: Run) -> None:
    expected = sum(run.truth["by_name"]["fill<int>"][place] for place in ("in_candidates", "outside"))
    assert run.kernels("FillFunctor<int>") == {"tuning": expected}


def test_inductors_own_benchmark_and_its_inputs_are_tuning(run: Run) -> None:
    # Of the library's kernels one per request serves; the rest is the linear layer being timed.
    launched = sum(run.kernels("nvjet").values())
    assert run.kernels("nvjet") == {"tuning": launched - 8, "work": 8}
    inputs = [d for d in device_of(run, 4) if "distribution" in d["name"]]
    assert len(inputs) == 4
    assert {d["purpose"] for d in inputs} == {"tuning"}
    assert {d["purpose"] for d in device_of(run, 4) if "FillFunctor<c10::BFloat16" in d["name"]} == {"tuning"}


def device_of(run: Run, request: int) -> list[Row]:
    """Device events that begin inside a request."""
    row = run.summary["requests"][request]
    start = ints(run.trace.device, "start_ns")
    inside = (start >= row["start_ns"]) & (start < row["start_ns"] + row["wall_ns"])
    return run.trace.device.filter(pa.array(inside)).to_pylist()


def test_work_inside_requests_is_the_steady_work(run: Run) -> None:
    for row, expected in zip(run.summary["requests"], run.truth["requests"], strict=True):
        assert row["name"] == expected["request"]
        assert row["wall_ns"] == expected["wall_ns"]
        assert row["device_by_purpose"]["work"] == expected["busy_steady_work_ns"]
    assert 19_000 < run.summary["requests"][4]["device_by_purpose"]["work"] < 21_000


def test_constants_of_the_compiler_are_setup(run: Run) -> None:
    copies = [d for d in device_of(run, 0) if d["kind"] == "memcpy"]
    assert len(copies) == run.truth["requests"][0]["n_work_inductor_setup"]
    assert {d["purpose"] for d in copies} == {"setup"}
    assert (
        run.summary["requests"][0]["device_by_purpose"]["setup"]
        == run.truth["requests"][0]["busy_work_inductor_setup_ns"]
    )


def test_cold_tax_of_cold_requests(run: Run) -> None:
    for i in COLD_REQUESTS:
        row = run.summary["requests"][i]
        assert 0.95 * row["wall_ns"] < row["cold_tax_ns"] <= row["wall_ns"]
        assert row["cold_tax_ns"] == pytest.approx(run.first_calls(i), rel=0.10)
        assert row["basis"] == "inferred"
        assert row["cold_tax_ns"] >= row["cold_exposed_ns"] > 0.95 * row["cold_tax_ns"]


def test_warm_requests_pay_nothing(run: Run) -> None:
    warm = [row for i, row in enumerate(run.summary["requests"]) if i not in COLD_REQUESTS]
    assert [(row["cold_tax_ns"], row["cold_exposed_ns"]) for row in warm] == [(0, 0)] * 5


def test_compile_and_load_of_each_candidate_after_the_first(run: Run) -> None:
    uses = [u for u in run.cold["first_uses"] if u["kernel"] == "matmul"]
    parts = ("compile_ns", "cache_ns", "launcher_build_ns", "module_load_ns")
    found = [sum(u[part] or 0 for part in parts) for u in uses]
    expected = run.compile_and_load()
    assert len(found) == len(expected) == 12
    assert found[1:] == [pytest.approx(ns, rel=0.10) for ns in expected[1:]]
    assert [run.cold["candidates"][u["candidate"]]["kernel"] for u in uses] == ["matmul"] * 12


def test_candidates(run: Run) -> None:
    rows = run.cold["candidates"]
    timed = [row for row in rows if row["kernel"] == "matmul"]
    assert len(timed) == run.truth["n_autotune_candidate"]
    assert sum(row["launches"] for row in timed) == run.kernels("matmul")["tuning"]
    assert [row["graph_compile"] for row in rows if row["kernel"] != "matmul"] == [True, True]
    assert run.summary["cold"]["tuning_device_ns"] == run.summary["devices"][0]["busy_by_purpose"]["tuning"]


def test_everything_cold_is_marked_inferred(run: Run) -> None:
    assert run.summary["cold"]["basis"] == "inferred"
    assert {row["basis"] for row in (*run.cold["first_uses"], *run.cold["candidates"])} == {"inferred"}
    # Only calls that the capture holds are records: the module loads, and what sets the library up.
    told = {s["evidence"] for s in run.cold["spans"] if s["basis"] == "recorded"}
    assert all(name.startswith(("cuModuleLoad", "cuLibraryLoad", "cuInit", "cuDevicePrimaryCtx")) for name in told)


def test_nsight_tells_the_phases_apart(nsight: Run) -> None:
    cold = nsight.summary["cold"]
    assert (cold["module_loads"], cold["compiles"], cold["disk_hits"]) == (16, 16, 0)
    calls = [r for r in nsight.trace.host["name"].to_pylist() if r.startswith("cuModuleLoad")]
    assert (calls.count("cuModuleLoadData"), calls.count("cuModuleLoad")) == (13, 3)
    assert cold["compile_includes"] == []
    builds = sum(s["t1"] - s["t0"] for s in nsight.measured if s["kind"] == "module_load")
    # Two launchers were built inside what the process calls "module load" of the first matmul and of softmax.
    assert cold["launcher_build_ns"] + cold["module_load_ns"] > builds
    assert cold["module_load_ns"] < 20_000_000
    assert cold["cache_ns"] == 0
    assert min(cold["compile_ns"], cold["autotune_ns"], cold["graph_compile_ns"]) > 1_000_000_000


def test_torch_shows_one_inferred_compile_or_load(torch: Run) -> None:
    cold = torch.summary["cold"]
    assert (cold["module_loads"], cold["disk_hits"]) == (None, None)
    assert cold["compile_includes"] == ["cache", "launcher_build", "module_load"]
    assert (cold["cache_ns"], cold["launcher_build_ns"], cold["module_load_ns"]) == (0, 0, 0)
    assert {u["loads"] for u in torch.cold["first_uses"]} == {None}


def test_the_hand_made_ranges_are_not_looked_at(nsight: Run) -> None:
    stripped = aligned(without_ranges(nsight.raw))
    assert stripped.host.num_rows < nsight.trace.host.num_rows
    assert stripped.device["purpose"].to_pylist() == nsight.trace.device["purpose"].to_pylist()
    bare = stripped.summary().to_dict()
    for key in ("cold", "requests"):
        assert bare[key] == nsight.summary[key]
    keys = ("busy_by_purpose", "idle_by_phase", "wall_by_phase")
    assert [bare["devices"][0][key] for key in keys] == [nsight.summary["devices"][0][key] for key in keys]


def test_the_torch_file_has_no_hand_made_ranges(torch: Run) -> None:
    names = {r["name"] for r in torch.raw.host.select(["name"]).filter(pa.array(is_range(torch.raw))).to_pylist()}
    own = ("request#", "## Call CompiledFxGraph")
    assert [n for n in names if not n.startswith(own) and "compile_id=" not in n] == []


def without_ranges(raw: Trace) -> Trace:
    """Without what anyone wrote by hand (`mm`, `autotune_candidate …`), the requests excepted."""
    code, names = codes(raw.host, "name")
    kept = [n.startswith("request#") for n in names]
    return replace(raw, host=raw.host.filter(pa.array(~is_range(raw) | np.array(kept)[code])))


def is_range(raw: Trace) -> np.ndarray:
    kind, kinds = codes(raw.host, "kind")
    return np.isin(kind, [i for i, k in enumerate(kinds) if k in ("range", "startend")])


def test_the_third_length_tunes_again_without_compiling_and_the_fourth_does_both(run: Run) -> None:
    # 512 is new, then 2048 and 777: M is in the key of the autotuner, and 777 is not divisible by 16.
    names = [run.summary["requests"][i]["name"] for i in COLD_REQUESTS]
    compiled = [row["request"] for row in run.cold["first_uses"] if row["kernel"] == "matmul"]
    assert [compiled.count(name) for name in names] == [6, 0, 6]
    searches = [row for row in run.cold["tunings"] if row["kernel"] == "matmul"]
    assert [row["request"] for row in searches] == names
    assert [row["candidates"] for row in searches] == [6, 6, 6]
    # Why, who, and whether it was ready, such a file does not say, and nobody guesses.
    assert {(r["why"], r["asked_by"], r["after_ready"], r["repeats"]) for r in searches} == {(None,) * 4}
    assert run.cold["specializations"] == run.cold["startup"] == run.cold["cache_misses"] == []


def test_the_top_of_a_naive_ranking_is_the_tuners_flush(run: Run) -> None:
    rows = run.trace.kernels().to_dict()["kernels"]
    total: dict[str, int] = {}
    for row in rows:
        total[row["name"]] = total.get(row["name"], 0) + row["total_ns"]
    top = max(total, key=lambda name: total[name])
    assert "FillFunctor<int>" in top
    assert {row["purpose"] for row in rows if row["name"] == top} == {"tuning"}


def test_shapes_pay_for_all_that_was_cold_and_each_tuned_length_is_to_be_pinned(run: Run) -> None:
    found = run.trace.shapes().to_dict()
    matmul = [row for row in found["shapes"] if row["kernel"] == "matmul"]
    assert sorted(row["calls"] for row in matmul) == [2, 2, 4]  # what was only tried by tuning is no shape
    assert {(row["misses"], row["candidates"], row["verdict"]) for row in matmul} == {(1, 6, "pin")}
    charged = sum(row["cold_ns"] for row in found["shapes"]) + sum(row["total_ns"] for row in found["uncharged"])
    assert charged == sum(span["end_ns"] - span["start_ns"] for span in run.cold["spans"])


def test_cold_requests_name_the_kernel_that_was_tuned_for_them(run: Run) -> None:
    rows = run.trace.requests().to_dict()["requests"]
    assert [i for i, row in enumerate(rows) if row["cold_tax_ns"]] == list(COLD_REQUESTS)
    for i in COLD_REQUESTS:
        assert next(cause["kernel"] for cause in rows[i]["causes"] if cause["kernel"]) == "matmul"


def test_operators_say_whose_kernels_they_ran(run: Run) -> None:
    whose = {(row["path"], row["implementation"]) for row in run.trace.kernels().to_dict()["paths"]}
    assert {("library", "cuBLAS"), ("aten", "PyTorch"), ("inductor", "Inductor"), ("triton", None)} <= whose
