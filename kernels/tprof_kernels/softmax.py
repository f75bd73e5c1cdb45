"""Softmax over one dimension, forward and backward: rows that fit a block in one read, longer ones online in two."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl

from tprof.buckets import BucketSet
from tprof.kernelspec import Cost, Inputs, KernelSpec
from tprof_kernels.checks import FLOATS, check_device, check_dtype, check_size
from tprof_kernels.draw import Draw
from tprof_kernels.rows import as_rows, from_rows
from tprof_kernels.tiles import fitting, row_grid
from tprof_kernels.tuned import Tuned

if TYPE_CHECKING:
    from collections.abc import Mapping

ONE_BLOCK = 16384  # columns: 16 warps then hold 32 float32 values per thread; twice that spills in the backward


# ---- rows that fit a block. Every value is read once, so the work is bound by memory, and a program's only choice is
# how many bytes it keeps in flight: TILE elements, several short rows or one long one.
#
# M and bucket are not specialized: a new batch size would compile a new variant (M == 1, M % 16 == 0) for nothing.
# N and the row steps are, since their divisibility by 16 is what allows 16-byte loads.


@triton.jit(do_not_specialize=["M", "bucket"])
def softmax_rows(out, x, M, N, x_row, x_col, bucket, BLOCK_N: tl.constexpr, TILE: tl.constexpr):
    """A program owns TILE / BLOCK_N whole rows, at least one; BLOCK_N is the power of two that holds N columns."""
    ROWS: tl.constexpr = TILE // BLOCK_N if TILE > BLOCK_N else 1
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < M) & (cols < N)  # the last program's rows past M, and every row's padding past N
    value = tl.load(x + rows * x_row + cols * x_col, mask, other=-float("inf")).to(tl.float32)  # padding adds exp = 0
    value = tl.exp(value - tl.max(value, 1)[:, None])
    tl.store(out + rows * N + cols, value / tl.sum(value, 1)[:, None], mask)


@triton.jit(do_not_specialize=["M", "bucket"])
def softmax_rows_backward(dx, y, dy, M, N, dy_row, dy_col, bucket, BLOCK_N: tl.constexpr, TILE: tl.constexpr):
    """The same tiles: dx = y * (dy - sum(y * dy)); y was written by the forward and is contiguous."""
    ROWS: tl.constexpr = TILE // BLOCK_N if TILE > BLOCK_N else 1
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < M) & (cols < N)
    value = tl.load(y + rows * N + cols, mask, other=0.0).to(tl.float32)
    grad = tl.load(dy + rows * dy_row + cols * dy_col, mask, other=0.0).to(tl.float32)
    tl.store(dx + rows * N + cols, value * (grad - tl.sum(value * grad, 1)[:, None]), mask)


# ---- longer rows. A program owns one row and walks it twice, BLOCK columns at a time. The first walk keeps, per lane,
# a running maximum and a sum scaled to it (Milakov and Gimelshein, arXiv:1805.02867): lanes are joined once, after the
# loop, instead of a reduction across the block in every step. The second walk mostly hits the L2 cache.


@triton.jit(do_not_specialize=["bucket"])
def softmax_long(out, x, N, x_row, x_col, bucket, BLOCK: tl.constexpr):
    """Program i owns row i."""
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    top = tl.full([BLOCK], -float("inf"), tl.float32)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + lanes
        value = tl.load(x + row * x_row + cols * x_col, cols < N, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(top, value)
        shift = tl.where(higher == -float("inf"), 0.0, higher)  # -inf - -inf is NaN, where exp must be 0
        total = total * tl.exp(top - shift) + tl.exp(value - shift)
        top = higher
    peak = tl.max(top, 0)
    total = tl.sum(total * tl.exp(top - tl.where(peak == -float("inf"), 0.0, peak)), 0)
    for start in range(0, N, BLOCK):
        cols = start + lanes
        value = tl.load(x + row * x_row + cols * x_col, cols < N).to(tl.float32)
        tl.store(out + row * N + cols, tl.exp(value - peak) / total, cols < N)


@triton.jit(do_not_specialize=["bucket"])
def softmax_long_backward(dx, y, dy, N, dy_row, dy_col, bucket, BLOCK: tl.constexpr):
    """Program i owns row i: one walk for sum(y * dy), one for dx."""
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + lanes
        value = tl.load(y + row * N + cols, cols < N, other=0.0).to(tl.float32)
        total += value * tl.load(dy + row * dy_row + cols * dy_col, cols < N, other=0.0).to(tl.float32)
    inner = tl.sum(total, 0)
    for start in range(0, N, BLOCK):
        cols = start + lanes
        value = tl.load(y + row * N + cols, cols < N).to(tl.float32)
        grad = tl.load(dy + row * dy_row + cols * dy_col, cols < N).to(tl.float32)
        tl.store(dx + row * N + cols, value * (grad - inner), cols < N)


BUCKETS = BucketSet.of(
    "softmax",
    ("softmax_*",),
    short={"N": "1..1024"},  # several rows per program
    medium={"N": "1025..4096"},  # one row per program, in few warps
    wide={"N": f"4097..{ONE_BLOCK}"},  # one row in many warps: the winner of a short one would spill
    long={"N": f"{ONE_BLOCK + 1}..262144"},  # vocabularies; a longer row is rare
)
ROW_CANDIDATES = (
    triton.Config({"TILE": 1024}, num_warps=4),  # many small programs: the best occupancy, for short rows
    triton.Config({"TILE": 4096}, num_warps=8),  # 16 values per thread: more bytes in flight per program
    triton.Config({"TILE": 4096}, num_warps=16),  # for the longest rows, whose values fill 8 warps' registers
)  # not more: stages mean nothing without a loop, and below 1024 elements the launch of programs dominates
LONG_CANDIDATES = (
    triton.Config({"BLOCK": 4096}, num_warps=8),  # two programs per multiprocessor and more
    triton.Config({"BLOCK": 8192}, num_warps=16),  # fewer steps, for few rows that leave multiprocessors idle
)  # not more: both saturate the memory; smaller blocks only add steps
ROW_SAFE, LONG_SAFE = triton.Config({"TILE": 1024}, num_warps=8), triton.Config({"BLOCK": 2048}, num_warps=4)

ROWS = Tuned(softmax_rows, ROW_CANDIDATES, ROW_SAFE, BUCKETS, prune=fitting(1, 48))
ROWS_BACKWARD = Tuned(softmax_rows_backward, ROW_CANDIDATES, ROW_SAFE, BUCKETS, prune=fitting(1, 48))
LONG = Tuned(softmax_long, LONG_CANDIDATES, LONG_SAFE, BUCKETS)
LONG_BACKWARD = Tuned(softmax_long_backward, LONG_CANDIDATES, LONG_SAFE, BUCKETS)


def softmax(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    """exp(x - max) / sum(exp(x - max)) along a dimension, computed in float32.

    A row of only -inf, or with a NaN or +inf, gives NaN, as `torch.softmax` does.

    Args:
        x: of any shape; float32, float16 or bfloat16. Where one step reaches every row and one every column it is read
            in place, whatever its strides; else it is copied once.
        dim: the dimension that sums to one.

    Returns:
        A contiguous tensor of x's shape and dtype (for another `dim` than the last: a view of one).

    Raises:
        TypeError: x has another dtype.
        ValueError: x is not on a GPU, or spans more than 2^31 - 1 elements.
        IndexError: x has no such dimension.
    """
    return torch.ops.tprof_kernels.softmax(x, dim)


@torch.library.custom_op("tprof_kernels::softmax", mutates_args=())
def _softmax(x: torch.Tensor, dim: int) -> torch.Tensor:
    check_dtype(FLOATS, x=x)
    check_device(x=x)
    check_size(x=x)
    rows = as_rows(x, dim)
    out = torch.empty(rows.shape, dtype=x.dtype, device=x.device)
    _launch(ROWS, LONG, rows, out, rows)
    return from_rows(out, x.shape, dim)


@torch.library.custom_op("tprof_kernels::softmax_backward", mutates_args=())
def _softmax_backward(y: torch.Tensor, dy: torch.Tensor, dim: int) -> torch.Tensor:
    check_size(dy=dy)
    rows, grads = as_rows(y, dim).contiguous(), as_rows(dy, dim)
    dx = torch.empty_like(rows)
    _launch(ROWS_BACKWARD, LONG_BACKWARD, grads, dx, rows, grads)
    return from_rows(dx, y.shape, dim)


def _launch(short: Tuned, long: Tuned, strided: torch.Tensor, *tensors: torch.Tensor) -> None:
    """Launch the kernel for this length of rows; `strided` is the argument whose steps it takes."""
    m, n = strided.shape
    if strided.numel() == 0:
        return
    if n > ONE_BLOCK:
        long.launch((m,), {"N": n}, *tensors, n, *strided.stride())
        return
    block = triton.next_power_of_2(n)
    short.launch(row_grid(m, block), {"N": n}, *tensors, m, n, *strided.stride(), BLOCK_N=block)


@_softmax.register_fake
def _(x: torch.Tensor, dim: int) -> torch.Tensor:
    return from_rows(x.new_empty(as_rows(x, dim).shape), x.shape, dim)


@_softmax_backward.register_fake
def _(y: torch.Tensor, dy: torch.Tensor, dim: int) -> torch.Tensor:
    return from_rows(y.new_empty(as_rows(y, dim).shape), y.shape, dim)


def _setup(ctx: Any, inputs: tuple[torch.Tensor, int], output: torch.Tensor) -> None:
    ctx.save_for_backward(output)
    ctx.dim = inputs[1]


def _backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor, None]:
    return torch.ops.tprof_kernels.softmax_backward(*ctx.saved_tensors, dy, ctx.dim), None


_softmax.register_autograd(_backward, setup_context=_setup)


# ---- what it promises


def _reference(x: torch.Tensor, dim: int = -1) -> torch.Tensor:
    e = (x - x.amax(dim, keepdim=True)).exp() if x.numel() else x
    return e / e.sum(dim, keepdim=True)


def _inputs(sizes: Mapping[str, Any], dtype: str, device: str, seed: int) -> Inputs:
    shape = (sizes["M"], sizes["N"])
    dim = sizes.get("dim", -1)
    return Inputs((Draw(dtype, device, seed).normal(*(shape if dim == -1 else shape[::-1]), scale=4), dim))


def _cost(sizes: Mapping[str, Any], dtype: str) -> Cost:
    count = math.prod((sizes["M"], sizes["N"]))
    size = count * getattr(torch, dtype).itemsize
    return Cost(size, size, 5 * count)  # maximum, subtract, exp, add, divide


SPECS = (
    KernelSpec(
        name="softmax",
        function=softmax,
        reference=_reference,
        fallback=torch.softmax,
        library=torch.softmax,
        inputs=_inputs,
        buckets=BUCKETS,
        shapes={
            "short": ({"M": 65536, "N": 512}, {"M": 32768, "N": 1000}),
            "medium": ({"M": 8192, "N": 4096},),
            "wide": ({"M": 4096, "N": 16384},),
            "long": ({"M": 1024, "N": 32000}, {"M": 512, "N": 131072}),
            "other": ({"M": 16, "N": 300_000},),
        },
        edges=(
            *({"M": 3, "N": n} for n in (1, 2, 127, 128, 129, 1023, 1024, 1025, 4099)),
            *({"M": 1, "N": n} for n in (ONE_BLOCK, ONE_BLOCK + 1, 18433)),  # 18433 = 9 * 2048 + 1
            {"M": 1031, "N": 7},
            {"M": 5, "N": 131, "dim": 0},
            {"M": 0, "N": 8},
            {"M": 8, "N": 0},
        ),
        dtypes=("float32", "float16", "bfloat16"),
        tolerance={"float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3},
        cost=_cost,
        triton_functions=(ROWS, ROWS_BACKWARD, LONG, LONG_BACKWARD),
        gradients=("x",),
    ),
)
