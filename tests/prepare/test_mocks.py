"""Whatever a launch may pass, what stands in for it gives the kernel that the launch looks for."""

from __future__ import annotations

import pytest
from support.skips import ABSENT, needs_triton

import tprof
from tprof.prepare.mocks import DIVISIBLE, NoMockError, Pointer, argument
from tprof.prepare.plan import Limits, make
from tprof.prepare.warmup import warmup

pytestmark = needs_triton

if not ABSENT:
    import torch
    import triton
    import triton.language as tl

    @triton.jit
    def helper(x):
        return x + 1

    @triton.jit
    def takes(p, n, o, HOW: tl.constexpr):
        """Takes anything, and looks at nothing of it."""
        tl.store(o, 1.0)

    @triton.jit
    def applies(x, o, FUNCTION: tl.constexpr, PAIR: tl.constexpr):
        """Calls a constant that is a function."""
        tl.store(o, FUNCTION(tl.load(x)) + PAIR[0])

    TENSORS = [torch.zeros(32, dtype=getattr(torch, name))
               for name in ("float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8",
                            "uint8", "int16", "int32", "int64", "bool")]  # fmt: skip
    ARGUMENTS = [
        *((tensor, 3, 0) for tensor in TENSORS),
        (torch.zeros(9)[1:], 3, 0),
        (None, 3, 0),
        *((TENSORS[0], n, 0) for n in (0, 1, 16, -16, -5, 2**31 - 1, 2**31, 2**40 + 1, 2**63, 2**63 + 1, True, 0.5)),
        *((TENSORS[0], 3, how) for how in (1, 1.5, True, None, "text", tl.float16, tl.int8)),
    ]


def kernels_in_memory(function) -> int:
    caches = function.device_caches if hasattr(function, "device_caches") else function.cache
    cache = caches[0]
    return len(cache[0] if isinstance(cache, tuple) else cache)


def test_every_kind_of_argument(tmp_path, shared_cache, monkeypatch):
    from support.record_kernels import forget

    from tprof.testing.stub import stub_driver

    def launch_all() -> None:
        for p, n, how in ARGUMENTS * 2:
            takes[(1,)](p, n, out, HOW=how, num_warps=2)
        for _ in range(2 * functions):
            applies[(1,)](out, out, FUNCTION=helper, PAIR=(1, 2))

    monkeypatch.setenv("TRITON_CACHE_DIR", str(shared_cache))
    functions = hasattr(triton, "knobs")  # before, a constant that can be called was refused
    out = torch.zeros(4)
    with stub_driver() as driver:
        with tprof.trace(tmp_path / "run"):
            launch_all()
        seen = kernels_in_memory(takes)
        forget(takes)
        forget(applies)
        report = warmup(make([tmp_path / "run"], Limits()))
        assert report.complete, report.items
        assert (kernels_in_memory(takes), kernels_in_memory(applies)) == (seen, int(functions))
        loaded = len(driver.loads)
        launch_all()
        assert (kernels_in_memory(takes), kernels_in_memory(applies)) == (seen, int(functions))
        assert len(driver.loads) == loaded


def test_what_stands_in():
    assert argument("x", "*kfp16", [DIVISIBLE], functions=str) == Pointer(
        argument("x", "*fp16", [], functions=str).dtype, 16
    )
    assert argument("n", "i32", [DIVISIBLE], functions=str) % 16 == 0
    assert argument("n", "i32", [], functions=str) % 16
    assert argument("n", "i64", [], functions=str) > 2**32
    with pytest.raises(NoMockError, match="let `call=` run it"):
        argument("d", "tensordesc<fp16[64]>", [], functions=str)
