"""Every kind of kernel and tuner that Triton has."""

from __future__ import annotations

import pytest
from support import rundir
from support.skips import needs_triton

pytestmark = needs_triton


@pytest.fixture
def xo():
    import torch

    return torch.ones(1024), torch.empty(1024)


@pytest.fixture
def kernels():
    from support import record_kernels

    return record_kernels


@pytest.fixture
def trace():
    from tprof.record import trace

    return trace


def _grid(meta):
    return (1024 // meta["B"],)


def test_heuristics_under_an_autotuner(stub, tmp_path, xo, kernels, trace):
    import triton

    heuristics = triton.heuristics({"HOW": lambda args: 0 if args["n"] else 2})(kernels.pick)
    configs = [triton.Config({"B": b}) for b in (128, 256)]
    tuner = triton.autotune(configs=configs, key=["n"])(heuristics)
    tuner.do_bench = kernels.bench
    with trace(tmp_path / "run"):
        tuner[_grid](*xo, 1024)
    process = rundir.only(tmp_path / "run")
    assert [s["name"] for s in process.kind("autotune", "candidate")] == ["pick"] * 3
    assert all(s["ok"] for s in process.spans.values())


def test_a_subclass_of_the_autotuner_with_a_run_of_its_own(stub, tmp_path, xo, kernels, trace):
    from triton.runtime.autotuner import Autotuner

    class Own(Autotuner):
        def run(self, *args, **kwargs):
            self.nargs = dict(zip(self.arg_names, args, strict=False))
            configs = self.prune_configs(kwargs)
            timings = {config: self._bench(*args, config=config, **kwargs) for config in configs}
            self.cache["mine"] = best = min(timings, key=timings.get)
            return self.fn.run(*args, **kwargs, **best.all_kwargs())

        def _bench(self, *args, config, **meta):
            return super()._bench(*args, config=config, **meta)

    tuner = kernels.tuned((128, 0, 4), (256, 0, 4))
    tuner.__class__ = Own
    with trace(tmp_path / "run"):
        tuner[_grid](*xo, 1024)
        kernels.add[(8,)](xo[0], *xo, 1024, B=128)
    process = rundir.only(tmp_path / "run")
    (search,) = process.kind("autotune")
    assert search["attrs"]["config"]["B"] == 256
    outer = [c for c in process.kind("candidate") if c["parent"] == search["id"]]
    assert len(outer) == 2
    assert process.notes == []


def test_an_exception_in_a_search_does_not_leave_it_open(stub, tmp_path, xo, kernels, trace):
    import triton

    def prune(configs, named_args, **_):
        raise KeyError("theirs")

    configs = [triton.Config({"B": b, "HOW": 0}) for b in (128, 256)]
    tuner = triton.autotune(configs=configs, key=["n"], prune_configs_by={"early_config_prune": prune})(kernels.pick)
    with trace(tmp_path / "run"):
        for _ in range(2):
            with pytest.raises(KeyError, match="theirs"):
                tuner[_grid](*xo, 1024)
        kernels.add[(8,)](xo[0], *xo, 1024, B=128)
    process = rundir.only(tmp_path / "run")
    searches = process.kind("autotune")
    assert [s["ok"] for s in searches] == [False, False]
    assert "KeyError" in searches[0]["error"]
    assert all(s["parent"] == 0 for s in process.kind("load"))


def test_autotune_results_on_disk(cold_cache, tmp_path, xo, kernels, trace):
    import triton
    from triton.runtime.autotuner import Autotuner

    from tprof.testing.stub import stub_driver

    if not hasattr(Autotuner, "check_disk_cache"):
        pytest.skip("this triton keeps no autotune results on disk")
    with stub_driver(), trace(tmp_path / "run"):
        for _ in range(2):
            tuner = kernels.tuned((128, 0, 4), (256, 0, 4), cache_results=True)
            kernels.forget(kernels.pick)
            tuner[_grid](*xo, 1024)
    process = rundir.only(tmp_path / "run")
    assert [s["attrs"]["hit"] for s in process.kind("autotune_cache")] == [False, True]
    assert len(process.kind("candidate")) == 2
    assert [s["ok"] for s in process.kind("autotune")] == [True, True]
    assert triton.__version__


def test_ptxas_refuses_a_candidate(cold_cache, tmp_path, xo, kernels, trace, capfd):
    from triton.runtime import errors

    from tprof.testing.stub import stub_driver

    if not hasattr(errors, "PTXASError"):
        pytest.skip("this triton does not let a candidate fail in ptxas")
    with stub_driver(), trace(tmp_path / "run"):
        kernels.tuned((128, 3, 4), (256, 0, 4))[_grid](*xo, 1024)
    capfd.readouterr()
    refused, good = rundir.only(tmp_path / "run").kind("candidate")
    assert "PTXASError" in refused["attrs"]["failed"]
    assert "failed" not in good["attrs"]


def test_gluon(stub, tmp_path, trace):
    gluon = pytest.importorskip("triton.experimental.gluon", reason="this triton has no Gluon")
    pytest.importorskip("support.gluon_kernels", reason="this triton's Gluon differs")
    import torch
    from support import gluon_kernels

    assert gluon
    with trace(tmp_path / "run"):
        gluon_kernels.fill[(4,)](torch.empty(512), 3.0, B=128)
    process = rundir.only(tmp_path / "run")
    assert [s["name"] for s in process.kind("jit", "load")] == ["fill", "fill"]
    if process.kind("stage"):  # else the disk cache had it
        assert process.kind("stage")[0]["attrs"]["stage"] == "ir"
    assert len(process.launches) == 1


def test_warmup_compiles_and_launches_nothing(stub, tmp_path, xo, kernels, trace):
    with trace(tmp_path / "run"):
        kernels.add.warmup(xo[0], *xo, 1024, B=128, grid=(8,))
        kernels.tuned((128, 0, 4), (256, 0, 4)).warmup(*xo, 1024, grid=(8,))
    process = rundir.only(tmp_path / "run")
    assert process.launches == []
    assert process.kind("autotune") == []
    assert [s["warmup"] for s in process.of("specialization")] == [True] * 3


def test_an_empty_grid_and_a_list_for_a_grid(stub, tmp_path, xo, kernels, trace):
    with trace(tmp_path / "run"):
        kernels.add[(0,)](xo[0], *xo, 1024, B=128)
        kernels.add[[8]](xo[0], *xo, 1024, B=128)
        kernels.add[[8]](xo[0], *xo, 1024, B=128)
        kernels.add[(8,)](xo[0], *xo, 1024, B=128)
    process = rundir.only(tmp_path / "run")
    assert [s["grid"] for s in process.of("shape")] == [[0], [8]]
    assert [launch["shape"] for launch in process.launches] == [1, 2, 2, 2]
    assert len(stub.launches) == 3


def test_shapes_are_read_once_or_always(stub, tmp_path, xo, kernels, trace):
    x, o = xo
    for shapes, expected in (("first", [[1024]]), ("always", [[1024], [512]])):
        with trace(tmp_path / shapes, shapes=shapes):
            kernels.add[(4,)](x, x, o, 512, B=128)
            kernels.add[(4,)](x[:512], x, o, 512, B=128)
        process = rundir.only(tmp_path / shapes)
        assert [s["args"]["x"]["shape"] for s in process.of("shape")] == expected


def test_shape_keys_are_bounded(stub, tmp_path, xo, kernels, trace):
    x, o = xo
    with trace(tmp_path / "run", max_shapes=4):
        for n in range(16, 16 * 21, 16):
            kernels.add[(8,)](x, x, o, n, B=128)
    process = rundir.only(tmp_path / "run")
    shapes = process.of("shape")
    assert len(shapes) == 5
    assert "grid" not in shapes[4]
    assert sum(launch["shape"] == shapes[4]["id"] for launch in process.launches) == 16


def test_kernels_are_not_kept_alive(stub, tmp_path, xo, kernels, trace):
    import gc
    import weakref

    from tprof.record import session

    with trace(tmp_path / "run"):
        kernel = weakref.ref(kernels.add[(8,)](xo[0], *xo, 1024, B=128))
        assert len(session.active.tables.kernels) == 1
        kernels.forget(kernels.add)
        gc.collect()
        assert kernel() is None
        assert session.active.tables.kernels == {}


def test_the_interpreter_shows_nothing_and_tprof_says_so(python, tmp_path):
    code = "import sys; from tprof.record import trace\nwith trace(sys.argv[1]): pass"
    done = python(code, tmp_path / "run", TRITON_INTERPRET="1")
    assert done.returncode == 0, done.stderr
    assert "TRITON_INTERPRET=1" in done.stderr
    assert rundir.only(tmp_path / "run").notes == ["interpreted"]


def test_another_tool_on_the_same_hooks(stub, tmp_path, xo, kernels, trace):
    """As Proton does it: enter and exit hooks that ask for the metadata, added before, within and left after."""
    import triton
    from triton.compiler.compiler import CompiledKernel

    from tprof.record.patches import Slot

    runtime = triton.knobs.runtime if hasattr(triton, "knobs") else CompiledKernel
    seen = []
    slots = Slot(runtime, "launch_enter_hook"), Slot(runtime, "launch_exit_hook")

    def enter(metadata):
        seen.append(("enter", metadata.get()["name"]))

    def leave(metadata):
        seen.append(("exit", metadata.get()["name"]))

    def launch():
        kernels.add[(8,)](xo[0], *xo, 1024, B=128)

    with trace(tmp_path / "run"):
        launch()
        slots[0].add(enter)
        slots[1].add(leave)
        launch()
    launch()
    for slot, hook in zip(slots, (enter, leave), strict=True):
        slot.remove(hook)
    assert seen == [("enter", "add"), ("exit", "add")] * 2
    assert len(rundir.only(tmp_path / "run").launches) == 2


def test_a_tool_that_replaces_the_enter_hook(stub, tmp_path, xo, kernels, trace, monkeypatch):
    """As tritonparse does it: a bare callable instead of the chain."""
    import triton

    if not hasattr(triton, "knobs"):
        pytest.skip("this triton has no knobs")
    seen = []
    with trace(tmp_path / "run"):
        theirs = lambda metadata: seen.append(metadata.get()["name"])  # noqa: E731
        monkeypatch.setattr(triton.knobs.runtime, "launch_enter_hook", theirs)
        kernels.add[(8,)](xo[0], *xo, 1024, B=128)
    monkeypatch.undo()
    assert seen == ["add"]
    assert len(rundir.only(tmp_path / "run").launches) == 1


def test_a_tool_that_wraps_over_tprof_keeps_its_wrap(stub, tmp_path, xo, kernels, trace, caplog):
    from triton.compiler.compiler import CompiledKernel

    called = []
    with trace(tmp_path / "run"):
        ours = vars(CompiledKernel)["_init_handles"]
        CompiledKernel._init_handles = theirs = lambda self: (called.append(1), ours(self))[1]
    assert vars(CompiledKernel)["_init_handles"] is theirs
    assert "passes through" in caplog.text
    kernels.add[(8,)](xo[0], *xo, 1024, B=128)  # through theirs and ours
    with trace(tmp_path / "again"):
        kernels.add[(8,)](xo[0], *xo, 1000, B=128)
    assert len(rundir.only(tmp_path / "again").kind("load")) == 1  # once, not once per wrap
    CompiledKernel._init_handles = ours
    with trace(tmp_path / "last"):
        pass
    assert vars(CompiledKernel)["_init_handles"] is not ours
    assert called


def test_a_hook_of_the_user_that_declines_a_compile(stub, tmp_path, xo, kernels, trace, monkeypatch):
    import triton
    from triton.runtime.jit import JITFunction

    owner, name = (triton.knobs.runtime, "jit_cache_hook") if hasattr(triton, "knobs") else (JITFunction, "cache_hook")
    decline = lambda **_: True  # noqa: E731
    with trace(tmp_path / "run"):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, staticmethod(decline) if isinstance(owner, type) else decline)
            assert kernels.add[(8,)](xo[0], *xo, 1024, B=128) is None
        kernels.add[(8,)](xo[0], *xo, 1024, B=128)
    process = rundir.only(tmp_path / "run")
    assert [s["attrs"].get("skipped", False) for s in process.kind("jit")] == [True, False]
    assert all(s["ok"] for s in process.spans.values())
    assert process.notes == []


def test_a_compile_that_fails_outside_its_stages(stub, tmp_path, xo, kernels, trace, monkeypatch):
    from triton.compiler import compiler

    def broken(*_, **__):
        raise OSError("no room for the cache")

    with trace(tmp_path / "run"):
        with monkeypatch.context() as patch:
            patch.setattr(compiler, "get_cache_manager", broken)
            for _ in range(2):
                with pytest.raises(OSError, match="no room"):
                    kernels.add[(8,)](xo[0], *xo, 1024, B=128)
        kernels.add[(8,)](xo[0], *xo, 1024, B=128)
    process = rundir.only(tmp_path / "run")
    assert [s["ok"] for s in process.kind("jit")] == [False, False, True]
    assert process.kind("load")[0]["parent"] == 0
    assert process.notes == []
