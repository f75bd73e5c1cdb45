"""Guards and budgets: what compiles or tunes after ready is named once, with and without a recording."""

from __future__ import annotations

import logging

import pytest
from support.skips import needs_triton

import tprof
from tprof.errors import GATE
from tprof.prepare.budget import Budget
from tprof.record import session as live
from tprof.record import spans

pytestmark = needs_triton


@pytest.fixture
def kernels(monkeypatch, tmp_path):
    pytest.importorskip("triton")
    from support import on_stub, record_kernels

    with on_stub.cold_stub(monkeypatch, tmp_path / "cache"):
        yield record_kernels


@pytest.fixture(params=[False, True], ids=["unrecorded", "recorded"])
def recorded(request, tmp_path):
    if not request.param:
        yield
        return
    with tprof.trace(tmp_path / "run", nvtx=False):
        yield


def _add(kernels, n, times=1):
    import torch

    x, o = torch.ones(1024), torch.empty(1024)
    for _ in range(times):
        kernels.add[(8,)](x, x, o, n, B=128)


def _tune(tuner, n, times=1):
    import torch

    for _ in range(times):
        tuner[lambda meta: (1024 // meta["B"],)](torch.ones(1024), torch.empty(1024), n)


def test_a_compile_after_ready_is_reported_once_with_its_reason(kernels, recorded, caplog):
    with tprof.guard() as watch:
        _add(kernels, 1024)
        assert not watch.violations  # start-up
        tprof.ready()
        _add(kernels, 1024, times=3)
        assert not watch.violations  # warm
        _add(kernels, 1000)
        kernels.forget(kernels.add)
        _add(kernels, 1000)  # found on disk
    (found,) = watch.violations
    assert (found.what, found.kernel) == ("compile", "add")
    assert found.reason == "n is no longer divisible by 16; not found on disk"
    assert [r.message for r in caplog.records if r.levelno == logging.WARNING] == [f"tprof: {found}"]
    assert watch.counts == {("compile", "add"): 1}


def test_tuning_after_ready_is_reported_by_its_key(kernels, recorded):
    tuner = kernels.tuned((128, 0, 4), (256, 0, 4))
    with tprof.guard("count") as watch:
        _tune(tuner, 1024)
        tprof.ready()
        _tune(tuner, 1024)
        assert not watch.violations
        _tune(tuner, 2048, times=2)
    (found,) = watch.violations
    assert (found.what, found.kernel, found.key) == ("tuning", "pick", "n=2048")


def test_what_a_search_compiles_is_not_reported_besides(kernels):
    tprof.ready()
    with tprof.guard("count") as watch:
        _tune(kernels.tuned((128, 0, 4), (256, 0, 4)), 1024)
    assert watch.counts == {("tuning", "pick"): 1}


def test_raise_refuses_the_work_each_time_and_leaves_nothing_open(kernels, recorded):
    tuner = kernels.tuned((128, 0, 4), (256, 0, 4))
    with tprof.guard("raise") as watch:
        _add(kernels, 1024)
        tprof.ready()
        for _ in range(2):
            with pytest.raises(tprof.RefusedError, match="add was compiled after ready") as refused:
                _add(kernels, 1000)
        with pytest.raises(tprof.RefusedError, match="pick was tuned after ready"):
            _tune(tuner, 1024)
        assert not spans.local.state.stack or spans.at_search(spans.local.state)
        _add(kernels, 1024)
        assert not spans.local.state.stack
    assert refused.value.exit_code == GATE
    assert len(watch.violations) == 2
    _add(kernels, 1000)  # nobody watches


def test_without_a_recording_hooks_go_with_the_last_listener(kernels, tmp_path):
    from triton.compiler.compiler import CompiledKernel

    before = CompiledKernel.launch_metadata
    first, second = tprof.guard("count"), tprof.guard("count")
    assert live.active is not None
    first.stop()
    assert live.active is not None
    with tprof.trace(tmp_path / "run", nvtx=False):
        tprof.ready()
        _add(kernels, 1024)
    _add(kernels, 1000)  # after the recording, the guard goes on
    assert second.counts == {("compile", "add"): 2}
    second.stop()
    assert live.active is None
    assert CompiledKernel.launch_metadata is before
    assert len(tprof.load(tmp_path / "run").frame("compiles")) == 1


def test_an_unknown_action_is_refused():
    with pytest.raises(tprof.UsageError, match="use one of warn, raise, count"):
        tprof.guard("explode")


def test_a_budget_counts_each_nanosecond_once(kernels, recorded):
    tuner = kernels.tuned((128, 0, 4), (256, 0, 4))
    with Budget(compile_s=0, autotune_s=0) as budget:
        _tune(tuner, 1024, times=2)
    assert set(budget.spent_ns) == {("compile_s", "pick"), ("autotune_s", "pick")}
    assert budget.spent_ns["autotune_s", "pick"] < budget.spent_ns["compile_s", "pick"]
    compiled, tuned = budget.broken().split("; ")
    assert compiled.startswith("compile_s is ")
    assert tuned.startswith("autotune_s is ")
    assert "where 0 s are allowed: pick " in tuned


def test_a_warm_stretch_is_within_any_budget(kernels, recorded):
    tuner = kernels.tuned((128, 0, 4), (256, 0, 4))
    _tune(tuner, 1024)
    _add(kernels, 1024)
    kernels.forget(kernels.add)
    with Budget(compile_s=0, autotune_s=0) as budget:
        _tune(tuner, 1024, times=3)
        _add(kernels, 1024)  # from disk
    assert not budget.broken()
    with Budget(compile_s=100) as budget:
        _add(kernels, 1000)
    assert not budget.broken()


def test_a_graph_after_ready_is_warned_about_and_never_refused(kernels, recorded, caplog):
    import torch

    torch.compiler.reset()
    with tprof.guard("raise") as watch:
        tprof.ready()
        doubled = torch.compile(lambda x: x + x, backend="eager")
        assert doubled(torch.ones(4)).tolist() == [2, 2, 2, 2]
    assert watch.counts.total() == 1
    (found,) = watch.violations
    assert found.what == "graph"
    assert "was compiled as a graph after ready" in caplog.text


FORKS = """
import os, sys, threading
from support import record_kernels as kernels
import torch, tprof
from tprof.testing.stub import stub_driver

x = torch.ones(1024)
with stub_driver():
    watch = tprof.guard("count")
    kernels.add[(8,)](x, x, x, 1024, B=128)
    tprof.ready()
    pid = os.fork()
    kernels.add[(8,)](x, x, x, 1000 if pid else 1, B=128)
    line = f"{'parent' if pid else 'child'} {dict(watch.counts)} {threading.active_count()}"
    os.write(1, f"{line}\\n".encode())  # at once: two processes write
    if pid:
        os.waitpid(pid, 0)
"""


def test_a_forked_child_goes_on_watching(python, tmp_path):
    done = python(FORKS, TRITON_CACHE_DIR=str(tmp_path / "cache"), TRITON_DEFAULT_FP_FUSION="1")
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [
        "child {('compile', 'add'): 1} 1", "parent {('compile', 'add'): 1} 1",
    ]  # fmt: skip
