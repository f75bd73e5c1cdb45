"""Kernels with one planted bug each, and the same without: what `tprof accept` must tell apart. Needs triton."""

from __future__ import annotations

import functools
from dataclasses import replace

import torch
import triton
import triton.language as tl

from tprof.buckets import BucketSet
from tprof.kernelspec import Cost, Inputs, KernelSpec

BUCKETS = BucketSet.of("rows", ("*",), short={"N": "1..256"}, long={"N": "257..2048"})
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit(do_not_specialize=["n"])
def softmax_rows(out, x, n, BLOCK: tl.constexpr, LAST: tl.constexpr, SHIFT: tl.constexpr):
    cols = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * n + cols, cols < n, other=-float("inf")).to(tl.float32)
    if SHIFT:
        value -= tl.max(value, 0)
    value = tl.exp(value)
    tl.store(out + tl.program_id(0) * n + cols, value / tl.sum(value, 0), cols < n - LAST)


@triton.jit
def softmax_each(out, x, n: tl.constexpr, BLOCK: tl.constexpr):
    """As above, but a variant for every length of a row."""
    cols = tl.arange(0, BLOCK)
    value = tl.load(x + tl.program_id(0) * n + cols, cols < n, other=-float("inf")).to(tl.float32)
    value = tl.exp(value - tl.max(value, 0))
    tl.store(out + tl.program_id(0) * n + cols, value / tl.sum(value, 0), cols < n)


@triton.jit(do_not_specialize=["n"])
def mean_rows(out, x, n, BLOCK: tl.constexpr, WIDE: tl.constexpr):
    total = tl.zeros([BLOCK], tl.float32 if WIDE else tl.float16)
    for start in range(0, n, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x + tl.program_id(0) * n + cols, cols < n, other=0.0).to(total.dtype)
    tl.store(out + tl.program_id(0), tl.sum(total.to(tl.float32), 0) / n)


def softmax(x, *, last=0, shift=True):
    x, n = x.contiguous(), x.shape[-1]
    out = torch.empty_like(x)
    softmax_rows[x.shape[0],](out, x, n, triton.next_power_of_2(n), last, shift)
    return out


def each(x):
    x, n = x.contiguous(), x.shape[-1]
    out = torch.empty_like(x)
    softmax_each[x.shape[0],](out, x, n, triton.next_power_of_2(n))
    return out


def mean(x, *, wide=True):
    x = x.contiguous()
    out = x.new_empty(x.shape[0])
    mean_rows[x.shape[0],](out, x, x.shape[1], 16, wide)
    return out


def reference(x):
    return torch.softmax(x, -1)


def _inputs(sizes, dtype, device, seed):
    drawn = torch.randn(sizes["M"], sizes["N"], device=device, generator=torch.Generator(device).manual_seed(seed))
    return Inputs((drawn.to(getattr(torch, dtype)),))


def _cost(sizes, _):
    return Cost(2 * sizes["M"] * sizes["N"], 2 * sizes["M"] * sizes["N"], 5 * sizes["M"] * sizes["N"])


GOOD = KernelSpec(
    name="good",
    function=softmax,
    reference=reference,
    fallback=reference,
    inputs=_inputs,
    buckets=BUCKETS,
    shapes={"short": ({"M": 4, "N": 200},), "long": ({"M": 4, "N": 1024},), "other": ({"M": 2, "N": 3000},)},
    edges=tuple({"M": 3, "N": n} for n in (1, 127, 128, 129, 500)),
    dtypes=("float16",),
    tolerance={"float16": 2e-3},
    cost=_cost,
    triton_functions=(softmax_rows,),
)
MEAN = replace(
    GOOD,
    name="mean",
    function=mean,
    reference=lambda x: x.mean(-1),
    fallback=lambda x: x.mean(-1),
    edges=tuple({"M": 2, "N": n} for n in (1, 17, 16_384)),
    tolerance={"float16": 2e-2},
    triton_functions=(mean_rows,),
)
STALE = replace(MEAN, name="stale fallback", fallback=lambda x: x.mean(-1) * 1.1)  # nobody kept it up with the kernel
SPECS = (
    GOOD,
    MEAN,
    replace(GOOD, name="mask off by one", function=functools.partial(softmax, last=1)),
    replace(GOOD, name="no maximum", function=functools.partial(softmax, shift=False)),
    replace(MEAN, name="narrow sum", function=functools.partial(mean, wide=False)),
    STALE,
    replace(GOOD, name="one variant a shape", function=each, triton_functions=(softmax_each,)),
)
