"""Proton's own launch hooks (they come with Triton) beside the recorder's: both hear every launch, and both let go."""

from __future__ import annotations

import pytest
from support import rundir
from support.skips import needs_triton

from tprof.record import trace

pytestmark = needs_triton


def test_proton_registers_and_leaves_while_tprof_records(tmp_path, stub):
    hooks = pytest.importorskip("triton.profiler.hooks", reason="this Triton's Proton has no HookManager")
    torch = pytest.importorskip("torch")
    from support import record_kernels as kernels

    x, o = torch.ones(1024), torch.empty(1024)
    heard = []

    class Listening(hooks.LaunchHook):
        def enter(self, metadata):
            heard.append(metadata.data["name"])

        def exit(self, _metadata):
            heard.append("exit")

    def launch(times):
        for _ in range(times):
            kernels.add[(8,)](x, x, o, 1024, B=128)

    listener = Listening()
    with trace(tmp_path / "run", nvtx=False):
        launch(1)
        hooks.HookManager.register(listener, 0)
        launch(2)
        hooks.HookManager.unregister(0)
        launch(1)
    launch(1)
    assert heard == ["add", "exit"] * 2
    assert len(rundir.only(tmp_path / "run").launches) == 4
    assert len(stub.launches) == 5
