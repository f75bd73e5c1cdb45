"""Tiny Triton kernels for the tests of the recorder; import only where triton is installed."""

from __future__ import annotations

from itertools import count

import triton
import triton.language as tl

TEXTS = ("ok", "much shared memory", "fails its own assertion", "refused by ptxas")


@triton.jit
def add(x, y, o, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    m = i < n
    tl.store(o + i, tl.load(x + i, mask=m) + tl.load(y + i, mask=m), mask=m)


@triton.jit
def pick(x, o, n, B: tl.constexpr, HOW: tl.constexpr):
    """Doubles; `HOW` indexes TEXTS."""
    tl.static_assert(HOW != 2, "HOW is 2")
    i = tl.program_id(0) * B + tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0.0)
    if HOW == 3:
        v = tl.inline_asm_elementwise("nonsense $0, $1;", "=r,r", [v], dtype=tl.float32, is_pure=True, pack=1)
    if HOW == 1:
        a = tl.reshape(v, (16, B // 16)).to(tl.float16)
        square = tl.dot(tl.trans(a), a)
        j = tl.arange(0, (B // 16) * (B // 16))
        tl.store(o + j, tl.reshape(square, ((B // 16) * (B // 16),)), mask=j < n)
    else:
        tl.store(o + i, v * 2, mask=i < n)


def bench(call, quantiles=None):
    """A benchmark of two launches; the later a candidate comes, the faster it is."""
    call()
    call()
    return [1.0 / next(_calls)] * 3


_calls = count(1)


def tuned(*configs, fn=pick, **kwargs):
    """`fn` under a fresh autotuner: each config is (B, HOW, num_warps). Needs a driver."""
    found = [triton.Config({"B": b, "HOW": how}, num_warps=warps, num_stages=3) for b, how, warps in configs]
    tuner = triton.autotune(configs=found, key=["n"], **kwargs)(fn)
    tuner.do_bench = bench  # 3.2 does not pass the argument on
    return tuner


def forget(function):
    """Empty the in-memory cache of a kernel, so that its next call looks on disk."""
    (function.device_caches if hasattr(function, "device_caches") else function.cache).clear()
