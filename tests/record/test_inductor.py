"""Inductor's generated kernels: every compile, load, candidate and launch, and nothing of it changed by recording."""

from __future__ import annotations

import importlib
import pickle
import sys
from collections import Counter

import pytest
from support import rundir
from support.skips import needs_triton

from tprof.record import trace

QUIET = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore:CUDA initialization")
pytestmark = [needs_triton, QUIET]

STATIC, TRITON = "StaticTritonCompileResult", "TritonCompileResult"
NAME = "triton_poi_fused_relu_0"


@pytest.fixture
def gpu(cold_cache):
    """A pretended GPU beneath Inductor and Triton."""
    from support import inductor_kernels

    if inductor_kernels.static_kernel() is None:
        pytest.skip("this torch has no static launcher")

    from tprof.testing.stub import stub_driver

    with stub_driver() as driver, inductor_kernels.pretended_gpu() as launcher:
        launcher.driver, launcher.cache = driver, cold_cache
        yield launcher


def work(tmp_path, **options):
    """Compile two configs, time them, launch five times with two shapes."""
    import torch
    from support import inductor_kernels

    tuner = inductor_kernels.load(inductor_kernels.write(tmp_path, **options))
    tuner.precompile()
    kinds = inductor_kernels.launcher_kinds(tuner)
    x, o = torch.ones(4096), torch.empty(4096)
    for n in (4096, 4096, 4096, 4096, 1000):
        tuner.run(x, o, n, stream=0)
    return tuner, kinds


def test_compiles_loads_candidates_and_launches_are_there(gpu, tmp_path):
    with trace(tmp_path / "run"):
        work(tmp_path)
    process = rundir.only(tmp_path / "run")
    assert process.notes == []
    counts = Counter(
        (s["kind"], s["ok"]) for s in process.spans.values() if s["kind"] not in ("cache", "graph_compile")
    )
    assert counts == {
        ("autotune_cache", True): 2, ("jit", True): 2, ("stage", True): 12, ("load", True): 2, ("autotune", True): 1,
        ("candidate", True): 2,
    }  # fmt: skip
    kernels = {k["id"]: k for k in process.of("kernel")}
    compiled = [(s["attrs"]["launcher"], s["attrs"]["cache_hit"], s["attrs"]["kernel"]) for s in process.kind("jit")]
    assert compiled == [("static", False, 1), ("static", False, 2)]
    assert [k["constexprs"] for k in kernels.values()] == [{"XBLOCK": 256}, {"XBLOCK": 128}]
    loads = [(s["name"], s["attrs"]["kernel"], s["attrs"]["registers"]) for s in process.kind("load")]
    assert loads == [(NAME, 1, 16), (NAME, 2, 16)]
    assert [s["attrs"]["timings_ms"] for s in process.kind("candidate")] == [[1.0], [2.0]]
    (search,) = process.kind("autotune")
    assert search["attrs"]["config"]["XBLOCK"] == 256
    assert {s["parent"] for s in process.kind("candidate")} == {search["id"]}
    assert [s["attrs"].get("hit") for s in process.kind("autotune_cache")] == [False, None]
    assert gpu.loads == [NAME, NAME]


def test_launches_carry_their_shape_and_the_first_is_cold(gpu, tmp_path):
    with trace(tmp_path / "run"):
        work(tmp_path)
    process = rundir.only(tmp_path / "run")
    (search,) = process.kind("autotune")
    assert [x["span"] for x in process.launches] == [search["id"], 0, 0, 0, 0]
    assert all(x["t_enter"] < x["t_exit"] for x in process.launches)
    assert process.launches[0]["t_enter"] >= search["end"], "tuning is not a part of the launch"
    shapes = {s["id"]: s for s in process.of("shape")}
    assert [shapes[x["shape"]]["grid"] for x in process.launches] == [[16, 1, 1]] * 4 + [[4, 1, 1]]
    assert shapes[process.launches[0]["shape"]]["args"] == {
        "in_ptr0": {"dtype": "float32", "shape": [4096], "stride": [1]},
        "out_ptr0": {"dtype": "float32", "shape": [4096], "stride": [1]},
        "xnumel": 4096,
    }
    assert {s["kernel"] for s in shapes.values()} == {1}


def outcome(gpu, tmp_path, folder):
    """All that a recording must leave as it is."""
    (tmp_path / folder).mkdir()
    tuner, kinds = work(tmp_path / folder)
    best = [p.read_text() for p in (tmp_path / folder).glob("*.best_config")]
    cached = {p.relative_to(gpu.cache): p.stat().st_size for p in gpu.cache.rglob("*") if p.is_file()}
    launcher = tuner.launchers[0]
    facts = (kinds, launcher.cache_hash, str(launcher.config), launcher._is_static, set(cached), len(gpu.launches))
    return facts, [b.split('"time_taken_ms"')[0] for b in best], pickle_of(tuner)


def pickle_of(tuner):
    tuner.launchers = []
    tuner.prepare_for_pickle()
    return sorted(vars(pickle.loads(pickle.dumps(tuner))))


def test_launcher_caches_and_results_are_the_same_with_and_without(gpu, tmp_path):
    plain = outcome(gpu, tmp_path, "plain")
    for file in sorted(gpu.cache.rglob("*"), reverse=True):
        file.unlink() if file.is_file() else file.rmdir()
    gpu.launches.clear()
    with trace(tmp_path / "run"):
        recorded = outcome(gpu, tmp_path, "recorded")
    assert recorded == plain
    assert plain[0][0] == [STATIC, STATIC]


def test_another_tools_hook_still_makes_inductor_avoid_the_static_launcher(gpu, tmp_path):
    import triton
    from triton.compiler import CompiledKernel

    from tprof.record.patches import Slot

    def seen(_metadata):
        calls.append(1)

    calls: list[int] = []
    slot = Slot(triton.knobs.runtime if hasattr(triton, "knobs") else CompiledKernel, "launch_enter_hook")
    slot.add(seen)
    try:
        with trace(tmp_path / "run"):
            _, kinds = work(tmp_path)
    finally:
        slot.remove(seen)
    assert kinds == [TRITON, TRITON]
    process = rundir.only(tmp_path / "run")
    assert {s["attrs"]["launcher"] for s in process.kind("jit")} == {"triton"}
    assert len(process.launches) == len(calls) == len(gpu.driver.launches) == 9, "five, and two of each candidate"
    candidates = [s["id"] for s in process.kind("candidate")]
    assert [x["span"] for x in process.launches][:4] == [candidates[0]] * 2 + [candidates[1]] * 2


def test_a_later_process_finds_the_winner_and_the_kernel(gpu, tmp_path):
    work(tmp_path)
    with trace(tmp_path / "run"):
        work(tmp_path)
    process = rundir.only(tmp_path / "run")
    (lookup,) = process.kind("autotune_cache")
    assert (lookup["attrs"]["hit"], lookup["attrs"]["config"]["XBLOCK"]) == (True, 256)
    assert [s["attrs"]["cache_hit"] for s in process.kind("jit")] == [True]
    assert process.kind("autotune", "candidate", "stage") == []
    (load,) = process.kind("load")
    assert process.launches[0]["span"] == load["id"], "it was loaded for this launch"


def test_coordinate_descent_is_a_search_with_its_own_candidates(gpu, tmp_path):
    with trace(tmp_path / "run"):
        work(tmp_path, coordesc=True)
    process = rundir.only(tmp_path / "run")
    first, descent = process.kind("autotune")
    assert [first["attrs"]["method"], descent["attrs"]["method"]] == ["all", "coordinate_descent"]
    within = Counter(s["kind"] for s in process.spans.values() if s["parent"] == descent["id"])
    assert within["candidate"] == within["jit"] == within["load"] >= 2
    assert len(process.launches) == 5
    assert process.launches[0]["span"] != 0
    assert process.launches[0]["t_enter"] >= descent["end"]


def test_a_candidate_that_spills_says_why_it_was_not_timed(gpu, tmp_path):
    gpu.spills = [0, 99]
    with trace(tmp_path / "run"):
        work(tmp_path)
    failed = rundir.only(tmp_path / "run").kind("candidate")[1]["attrs"]
    assert (failed["timings_ms"], failed["failed"]) == (None, "not timed: it spills 99 registers")


def test_a_config_that_does_not_compile_has_its_error(gpu, tmp_path):
    from support import inductor_kernels
    from triton.compiler.errors import CompilationError

    with trace(tmp_path / "run"), pytest.raises(CompilationError):
        work(tmp_path, body=inductor_kernels.BROKEN)
    process = rundir.only(tmp_path / "run")
    (jit,) = process.kind("jit")
    assert not jit["ok"]
    assert "it is broken" in jit["error"]


def test_a_launch_that_fails_is_recorded_and_raises(gpu, tmp_path):
    import torch

    tuner, _ = work(tmp_path)
    gpu.error = "an illegal memory access was encountered"
    with trace(tmp_path / "run"):
        with pytest.raises(RuntimeError, match="illegal memory access"):
            tuner.run(torch.ones(1), torch.ones(1), 1, stream=0)
        gpu.error = None
        tuner.run(torch.ones(1), torch.ones(1), 1, stream=0)
    process = rundir.only(tmp_path / "run")
    assert [x["t_exit"] == -1 for x in process.launches] == [True, False]
    (kernel,) = process.of("kernel")
    assert (kernel["name"], kernel["launcher"]) == (NAME, "static"), "loaded before the recording began"


def test_a_hook_that_fails_is_named_and_the_launch_goes_on(gpu, tmp_path, monkeypatch):
    from tprof.record import inductor_launch

    def broken(*_):
        raise KeyError("ours")

    monkeypatch.setattr(inductor_launch, "find_key", broken)
    with trace(tmp_path / "run"):
        work(tmp_path)
    process = rundir.only(tmp_path / "run")
    assert process.launches == []
    assert process.notes == ["hook-disabled"]
    assert len(gpu.launches) == 9


def test_a_tuner_is_not_kept_alive(tmp_path):
    from types import SimpleNamespace
    from typing import ClassVar

    from tprof.record import inductor_launch, session

    class Tuner:
        fn = SimpleNamespace(__name__=NAME, arg_names=["x"])
        launchers = (SimpleNamespace(cache_hash="A", config=None),)
        inductor_meta: ClassVar = {}

    with trace(tmp_path / "run"):
        tuner = Tuner()
        inductor_launch.find_key(session.active, tuner, (1,))
        assert len(session.active.tables.runners) == 1
        del tuner
        assert session.active.tables.runners == {}


def attributes():
    """All that the hooks wrap, as it is now."""
    from tprof.record import inductor_hooks

    found = {}
    for target in inductor_hooks.TARGETS:
        module = sys.modules.get(target.module)
        owner = module if target.owner is None else getattr(module, target.owner, None)
        found[target.module, target.owner, target.name] = vars(owner).get(target.name) if owner else None
    return found


def test_nothing_is_left_patched(gpu, tmp_path):
    for module in ("async_compile", "select_algorithm"):
        importlib.import_module(f"torch._inductor.{module}")

    finders, before = list(sys.meta_path), attributes()
    assert sum(value is not None for value in before.values()) >= 12
    with trace(tmp_path / "run"), trace():
        during = attributes()
        work(tmp_path)
    assert attributes() == before
    assert sys.meta_path == finders
    changed = {key[2] for key in before if during[key] is not before[key]}
    assert {"_precompile_config", "bench", "run", "load_kernel", "_worker_compile_triton"} <= changed
    work(tmp_path)


def test_what_is_imported_later_is_recorded_and_restored(python, tmp_path):
    done = python(
        """
import sys, tprof
with tprof.trace(sys.argv[1]):
    assert not any(name.startswith("torch._inductor") for name in sys.modules)
    import torch._inductor.runtime.triton_heuristics as heuristics
    method = heuristics.CachingAutotuner.__dict__["bench"]
    assert method.__tprof__ and heuristics.__spec__.loader.exec_module.__self__ is heuristics.__loader__
assert not hasattr(heuristics.CachingAutotuner.__dict__["bench"], "__tprof__")
assert not any("tprof" in type(finder).__module__ for finder in sys.meta_path)
""",
        tmp_path / "run",
    )
    assert done.returncode == 0, done.stderr
    assert rundir.only(tmp_path / "run").notes == []
