"""Every candidate of every kernel compiles for real, in every dtype, for two generations of GPUs; none spills.

The stub driver stands for the GPU: Triton's compiler and ptxas are real, and the autotuner tries what it would try.
"""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from support.kernel_check import call, forget_all
from tprof_kernels import KERNELS, draw
from tprof_kernels.tuned import Tuned

from tprof.testing.stub import stub_driver

FLOAT8_FROM = 89  # compute capability, times ten
ACCEPTED_SPILLS = {  # registers that a kernel may spill
    # 128 dimensions fill the registers; attention_dkdv's loops only read back addresses that were stored before them
    "attention_forward": 32,
    "attention_dq": 24,
    "attention_dkdv": 128,
    # 8.0 multiplies from registers: the widest tile, or float32's parts of products, spill there and lose the search
    "moe_matmul": 104,
    "moe_weight_gradient": 8,
    "matmul_tiles": 8,  # float32 with a K that is no multiple of the step: 32 bytes of a thread's 1000
}


@pytest.fixture(autouse=True)
def _blank(monkeypatch, tmp_path):
    """Nothing is computed, so inputs need no values: large shapes cost nothing. The disk cache is empty."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # 3.9 warns where it is unset
    monkeypatch.setattr(draw.Draw, "normal", _normal)


def _normal(self, *shape, scale=1.0, dtype=None):
    return torch.empty(shape, dtype=dtype or self.dtype)


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.name) for spec in KERNELS.values()])
def test_every_candidate_compiles_and_fits(spec, capability, monkeypatch):
    tuned = [kernel for kernel in spec.triton_functions if isinstance(kernel, Tuned)]
    shapes = [sizes for group in spec.shapes.values() for sizes in group]
    forget_all()
    untried = {kernel.name: list(kernel.candidates) for kernel in tuned}
    for kernel in tuned:
        monkeypatch.setattr(kernel.autotuner, "_bench", _watched(kernel, untried[kernel.name]))
    dtypes = [name for name in spec.dtypes if "float8" not in name or capability >= FLOAT8_FROM]
    with stub_driver(capability, cost_ns=lambda *_: 1e9) as driver:
        for dtype in dtypes:
            missing, first = set(untried), len(driver.loads)
            for sizes in shapes:  # until each kernel was searched in this dtype
                if missing:
                    call(spec, sizes, dtype, torch.empty_like)
                    missing -= {load.name for load in driver.loads[first:]}
            assert not missing, "no representative shape launches it"
        for dtype, sizes in itertools.product(dtypes, shapes):
            if any(untried.values()):
                call(spec, sizes, dtype, torch.empty_like)
        monkeypatch.setenv("TPROF_KERNELS_TUNE", "0")  # the conservative configs too
        call(spec, shapes[0], spec.dtypes[0], torch.empty_like)
    assert not any(untried.values()), "no representative shape tries it"
    spilled = {load.name: load.spills for load in driver.loads if load.spills > ACCEPTED_SPILLS.get(load.name, 0)}
    assert not spilled
    assert max(load.shared_bytes for load in driver.loads) <= driver.properties["max_shared_mem"]


def _watched(kernel, untried):
    """The autotuner's way to time a candidate, which strikes it from the list and does not let it fail."""
    bench = kernel.autotuner._bench

    def watched(*args, config, **meta):
        times = bench(*args, config=config, **meta)
        assert math.isfinite(times[0]), f"{kernel.name} with {config} does not fit"
        untried[:] = [other for other in untried if other != config]
        return times

    return watched
