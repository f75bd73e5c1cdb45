"""Every candidate of every kernel compiles for real, in every dtype, for two generations of GPUs; none spills.

The stub driver stands for the GPU: Triton's compiler and ptxas are real, and the autotuner tries what it would try.
"""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from support.kernel_check import blank, call, forget_all
from tprof_kernels import KERNELS, draw
from tprof_kernels.tuned import Tuned

from tprof.testing.stub import stub_driver

FLOAT8_FROM = 89  # compute capability, times ten
TWIN = "float16"  # has bfloat16's width and instructions, and takes as long to compile: left out
LONG = [1e6] * 3  # ms: a candidate that wins no search
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


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """One disk cache for all: kernels that several specs share are compiled once."""
    return tmp_path_factory.mktemp("triton")


@pytest.fixture(autouse=True)
def _blank(monkeypatch, cache):
    """Nothing is computed, so inputs need no values: large shapes cost nothing."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(cache))
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")  # 3.9 warns where it is unset
    monkeypatch.setattr(draw.Draw, "normal", blank)


@pytest.mark.parametrize("capability", [80, 90])
@pytest.mark.parametrize("spec", [pytest.param(spec, id=spec.name) for spec in KERNELS.values()])
def test_every_candidate_compiles_and_fits(spec, capability, monkeypatch):
    tuned = [kernel for kernel in spec.triton_functions if isinstance(kernel, Tuned)]
    shapes = [sizes for group in spec.shapes.values() for sizes in group]
    dtypes = [name for name in spec.dtypes if name != TWIN and ("float8" not in name or capability >= FLOAT8_FROM)]
    forget_all()
    every = {(kernel.name, str(config)) for kernel in tuned for config in kernel.candidates}
    tried, ever = set(), set()
    for kernel in tuned:
        monkeypatch.setattr(kernel.autotuner, "_bench", _once(kernel, tried))
    with stub_driver(capability, cost_ns=lambda *_: 1e9) as driver:
        for dtype in dtypes:
            missing, first = {kernel.name for kernel in tuned}, len(driver.loads)
            tried.clear()
            for sizes in shapes:  # until each kernel was searched in this dtype
                if missing:
                    call(spec, sizes, dtype, torch.empty_like)
                    missing -= {load.name for load in driver.loads[first:]}
            assert not missing, "no representative shape launches it"
            ever |= tried
        tried |= ever
        for sizes, dtype in itertools.product(shapes, dtypes):
            if every - tried:
                call(spec, sizes, dtype, torch.empty_like)
        monkeypatch.setenv("TPROF_KERNELS_TUNE", "0")  # the conservative configs too
        call(spec, shapes[0], spec.dtypes[0], torch.empty_like)
    assert tried >= every, "no representative shape tries it"
    spilled = {load.name: load.spills for load in driver.loads if load.spills > ACCEPTED_SPILLS.get(load.name, 0)}
    assert not spilled
    assert max(load.shared_bytes for load in driver.loads) <= driver.properties["max_shared_mem"]


def _once(kernel, tried):
    """The autotuner's way to time a candidate, which times each once and does not let it fail."""
    bench = kernel.autotuner._bench

    def once(*args, config, **meta):
        if (kernel.name, str(config)) in tried:
            return LONG
        tried.add((kernel.name, str(config)))
        times = bench(*args, config=config, **meta)
        assert math.isfinite(times[0]), f"{kernel.name} with {config} does not fit"
        return times

    return once
