"""The kernels on a real GPU: recorded from search to execution, and a new length in a bucket searches nothing.

Their results are tested by `pytest tests/kernels`, which takes the GPU where there is one.
"""

from __future__ import annotations

import pytest
from gpu.conftest import WHY

import tprof
from tprof.intervals import NONE
from tprof.model import codes, ints

if not WHY:
    import torch
    from support.kernel_check import call, forget_all
    from tprof_kernels import KERNELS
    from tprof_kernels.softmax import ROWS, softmax

    SPECS = list(KERNELS.values())
else:
    SPECS = []


@pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.name) for spec in SPECS])
def test_every_execution_knows_its_launch_and_its_shape_key(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    forget_all()
    bucket = next(iter(spec.shapes))
    with tprof.trace(tmp_path / "run", torch_profiler="gpu"):
        for _ in range(2):
            call(spec, spec.shapes[bucket][0], "bfloat16" if "bfloat16" in spec.dtypes else spec.dtypes[0])
        torch.cuda.synchronize()
    trace = tprof.load(tmp_path / "run")
    device, host = trace.frame("device"), trace.frame("host")
    names = set(host.kernel[host.kind == "launch"])  # of the many that a spec may launch, those that this shape needs
    rows = device.name.isin(names).to_numpy()
    launch, key = ints(trace.device, "launch")[rows], codes(trace.host, "shape_key")[0]
    assert rows.sum() == ((host.kind == "launch") & host.kernel.isin(names)).sum() > 1
    assert (launch != NONE).all()
    assert (key[launch] != NONE).all()
    searched = trace.frame("candidates")
    assert searched.error.isna().all()
    assert (searched.groupby("kernel").winner.sum() >= 1).all()


def test_a_new_length_in_a_bucket_searches_nothing():
    softmax(torch.randn(64, 700, device="cuda"))
    before = len(ROWS.autotuner.cache)
    for length in (701, 702, 1023):
        softmax(torch.randn(65, length, device="cuda"))
    assert len(ROWS.autotuner.cache) == before
