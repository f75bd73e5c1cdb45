"""Triton functions of LayerNorm and RMSNorm, and how each is tuned.

One function serves both: LayerNorm is RMSNorm of the row less its mean (`CENTER`), plus a bias where there is one.
Statistics and sums are float32. M is not specialized: a new number of tokens would compile a new variant for nothing.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tprof.buckets import BucketSet
from tprof_kernels.tiles import fitting
from tprof_kernels.tuned import Tuned

ONE_BLOCK = 16384  # columns that a program of the forward holds: 32 float32 values per thread of 16 warps
ONE_BLOCK_BACKWARD = 8192  # the backward holds four such rows (x, dy and two sums): half as many columns


@triton.jit
def _stream(x, residual, x_at, residual_at, mask):
    """x, plus the residual where there is one.

    The sum is rounded to x's dtype, as an addition of its own would round it: the backward reads it back from memory
    and must see what the forward has normalized.
    """
    value = tl.load(x + x_at, mask, other=0.0).to(tl.float32)
    if residual is not None:
        value += tl.load(residual + residual_at, mask, other=0.0).to(tl.float32)
        value = value.to(x.dtype.element_ty).to(tl.float32)
    return value


@triton.jit
def _affine(value, weight, bias, cols, mask):
    """The value times weight, plus bias: both are shared by all rows, so the first program brings them to the cache."""
    value *= tl.load(weight + cols, mask, other=0.0).to(tl.float32)
    if bias is not None:
        value += tl.load(bias + cols, mask, other=0.0).to(tl.float32)
    return value


# ---- rows that fit a block: read once, held in registers between the statistics and the output


@triton.jit(do_not_specialize=["M", "bucket"])
def norm_rows(
    y, stream, mean, rstd, x, residual, weight, bias, M, N, x_row, x_col, residual_row, residual_col, eps, bucket,
    CENTER: tl.constexpr, BLOCK_N: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """A program owns TILE / BLOCK_N whole rows, at least one; BLOCK_N is the power of two that holds N columns."""
    ROWS: tl.constexpr = TILE // BLOCK_N if TILE > BLOCK_N else 1
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    cols = tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < M) & (cols < N)  # the last program's rows past M, and every row's padding past N
    value = _stream(x, residual, rows * x_row + cols * x_col, rows * residual_row + cols * residual_col, mask)
    if stream is not None:
        tl.store(stream + rows * N + cols, value, mask)
    if CENTER:
        middle = tl.sum(value, 1)[:, None] / N
        value = tl.where(mask, value - middle, 0.0)  # else padding would count -mean in the variance
        tl.store(mean + rows, middle, rows < M)
    scale = tl.rsqrt(tl.sum(value * value, 1)[:, None] / N + eps)
    tl.store(rstd + rows, scale, rows < M)
    tl.store(y + rows * N + cols, _affine(value * scale, weight, bias, cols, cols < N), mask)


@triton.jit(do_not_specialize=["M", "bucket"])
def norm_rows_backward(
    dx, dweight, dbias, x, weight, mean, rstd, dy, dstream, M, N, x_row, x_col, dy_row, dy_col, ds_row, ds_col, bucket,
    CENTER: tl.constexpr, BLOCK_N: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Program i owns every num_programs-th tile of rows, from the i-th, and row i of `dweight` and `dbias`.

    dx is complete; the sums over a program's rows stay in registers until its last row, and are added over programs
    afterwards. No two programs write one address, so the result does not depend on who comes first.
    """
    ROWS: tl.constexpr = TILE // BLOCK_N if TILE > BLOCK_N else 1
    program, programs = tl.program_id(0), tl.num_programs(0)
    cols = tl.arange(0, BLOCK_N)[None, :]
    factor = tl.load(weight + cols, cols < N, other=0.0).to(tl.float32)  # held for all rows
    dweight_sum = tl.zeros([ROWS, BLOCK_N], tl.float32)
    dbias_sum = tl.zeros([ROWS, BLOCK_N], tl.float32)
    for first in range(program * ROWS, M, programs * ROWS):
        rows = first + tl.arange(0, ROWS)[:, None]
        mask = (rows < M) & (cols < N)
        scale = tl.load(rstd + rows, rows < M, other=0.0)
        value = tl.load(x + rows * x_row + cols * x_col, mask, other=0.0).to(tl.float32)
        if CENTER:
            value -= tl.load(mean + rows, rows < M, other=0.0)
        value *= scale  # the normalized row; its padding is not 0, but meets a gradient that is
        grad = tl.load(dy + rows * dy_row + cols * dy_col, mask, other=0.0).to(tl.float32)
        dweight_sum += grad * value
        dbias_sum += grad
        grad *= factor
        along = tl.sum(grad * value, 1)[:, None] / N
        shift = tl.sum(grad, 1)[:, None] / N if CENTER else 0.0
        grad = (grad - value * along - shift) * scale
        if dstream is not None:
            grad += tl.load(dstream + rows * ds_row + cols * ds_col, mask, other=0.0).to(tl.float32)
        tl.store(dx + rows * N + cols, grad, mask)
    here = program * N + cols
    tl.store(dweight + here, tl.sum(dweight_sum, 0)[None, :], cols < N)
    if dbias is not None:
        tl.store(dbias + here, tl.sum(dbias_sum, 0)[None, :], cols < N)


# ---- longer rows: a program owns one row and walks it twice, BLOCK columns at a time; the second walk mostly hits the
# L2 cache. They are rare, so nothing is searched for them.


@triton.jit(do_not_specialize=["bucket"])
def norm_long(
    y, stream, mean, rstd, x, residual, weight, bias, N, x_row, x_col, residual_row, residual_col, eps, bucket,
    CENTER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Program i owns row i. Steps are joined by the rule of Chan, Golub and LeVeque (1979), which does not cancel."""
    row = tl.program_id(0)
    middle, spread = 0.0, 0.0  # mean, and sum of squared distances from it, of the columns so far
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        value = _stream(x, residual, row * x_row + cols * x_col, row * residual_row + cols * residual_col, mask)
        if stream is not None:
            tl.store(stream + row * N + cols, value, mask)
        if CENTER:
            step = tl.minimum(N - start, BLOCK)
            delta = tl.sum(value, 0) / step - middle
            value = tl.where(mask, value - (middle + delta), 0.0)
            weight_of_step = step / (start + step)
            spread += delta * delta * weight_of_step * start
            middle += delta * weight_of_step
        spread += tl.sum(value * value, 0)
    scale = tl.rsqrt(spread / N + eps)
    tl.store(rstd + row, scale)
    if CENTER:
        tl.store(mean + row, middle)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        value = _stream(x, residual, row * x_row + cols * x_col, row * residual_row + cols * residual_col, mask)
        tl.store(y + row * N + cols, _affine((value - middle) * scale, weight, bias, cols, mask), mask)


@triton.jit
def _normal_and_grad(x, dy, x_at, dy_at, middle, scale, mask):
    """The normalized values and their gradients; padding is 0 in the latter."""
    value = (tl.load(x + x_at, mask, other=0.0).to(tl.float32) - middle) * scale
    return value, tl.load(dy + dy_at, mask, other=0.0).to(tl.float32)


@triton.jit(do_not_specialize=["bucket"])
def norm_long_backward(
    dx, x, weight, mean, rstd, dy, dstream, N, x_row, x_col, dy_row, dy_col, ds_row, ds_col, bucket,
    CENTER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Program i owns row i of dx: one walk for the two sums along it, one for dx."""
    row = tl.program_id(0)
    scale = tl.load(rstd + row)
    middle = tl.load(mean + row) if CENTER else 0.0
    along = tl.zeros([BLOCK], tl.float32)
    shift = tl.zeros([BLOCK], tl.float32)
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        value, grad = _normal_and_grad(
            x, dy, row * x_row + cols * x_col, row * dy_row + cols * dy_col, middle, scale, mask
        )
        grad = _affine(grad, weight, None, cols, mask)
        along += grad * value
        shift += grad
    along_mean = tl.sum(along, 0) / N
    shift_mean = tl.sum(shift, 0) / N if CENTER else 0.0
    for start in range(0, N, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        mask = cols < N
        value, grad = _normal_and_grad(
            x, dy, row * x_row + cols * x_col, row * dy_row + cols * dy_col, middle, scale, mask
        )
        grad = (_affine(grad, weight, None, cols, mask) - value * along_mean - shift_mean) * scale
        if dstream is not None:
            grad += tl.load(dstream + row * ds_row + cols * ds_col, mask, other=0.0).to(tl.float32)
        tl.store(dx + row * N + cols, grad, mask)


@triton.jit(do_not_specialize=["M", "bucket"])
def norm_columns_backward(
    dweight, dbias, x, mean, rstd, dy, M, N, x_row, x_col, dy_row, dy_col, bucket,
    CENTER: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Program (j, i) owns BLOCK columns from j * BLOCK, of every num_programs-th row from i: row i of the sums."""
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = cols < N
    dweight_sum = tl.zeros([BLOCK], tl.float32)
    dbias_sum = tl.zeros([BLOCK], tl.float32)
    for row in range(tl.program_id(1), M, tl.num_programs(1)):
        middle = tl.load(mean + row) if CENTER else 0.0
        at, dy_at = row * x_row + cols * x_col, row * dy_row + cols * dy_col
        value, grad = _normal_and_grad(x, dy, at, dy_at, middle, tl.load(rstd + row), mask)
        dweight_sum += grad * value
        dbias_sum += grad
    here = tl.program_id(1) * N + cols
    tl.store(dweight + here, dweight_sum, mask)
    if dbias is not None:
        tl.store(dbias + here, dbias_sum, mask)


# The number of rows divides the work among programs, so the winner for one token is not that for thousands: without
# buckets of M, whichever came first would decide for both.
BUCKETS = BucketSet.of(
    "norm",
    ("norm_*",),
    head={"N": "1..1024"},  # norms of attention heads: many short rows
    decode={"M": "1..256", "N": f"1025..{ONE_BLOCK}"},
    prefill={"M": "257..", "N": f"1025..{ONE_BLOCK}"},
)
UNSEARCHED = BucketSet("norm", (), ("norm_*",))
CANDIDATES = (
    triton.Config({"TILE": 1024}, num_warps=4),  # many small programs: the best occupancy, for short rows
    triton.Config({"TILE": 4096}, num_warps=8),  # 16 values per thread: more bytes in flight per program
    triton.Config({"TILE": 1024}, num_warps=16),  # rows of 4,096 columns and more, whose values fill 8 warps' registers
)  # not more: without a tensor-core loop stages mean nothing, and a larger TILE only lowers the occupancy
BACKWARD_CANDIDATES = (
    triton.Config({"TILE": 2048}, num_warps=4),  # 16 values per thread of each of four tiles: under 128 registers
    triton.Config({"TILE": 4096}, num_warps=8),  # the same per thread; fewer, wider programs
    triton.Config({"TILE": 1024}, num_warps=16),  # rows of 4,096 columns and more, at half the registers per thread
)  # not more: a smaller TILE leaves each program too little to read between two reductions
SAFE, LONG_SAFE = triton.Config({"TILE": 1024}, num_warps=8), triton.Config({"BLOCK": 4096}, num_warps=8)
COLUMNS_SAFE = triton.Config({"BLOCK": 1024}, num_warps=4)
KEY = ("BLOCK_N", "CENTER")  # fixed by the model

ROWS = Tuned(norm_rows, CANDIDATES, SAFE, BUCKETS, KEY, prune=fitting(8, 32))
ROWS_BACKWARD = Tuned(norm_rows_backward, BACKWARD_CANDIDATES, SAFE, BUCKETS, KEY, prune=fitting(8, 16))
LONG = Tuned(norm_long, (), LONG_SAFE, UNSEARCHED)
LONG_BACKWARD = Tuned(norm_long_backward, (), LONG_SAFE, UNSEARCHED)
COLUMNS_BACKWARD = Tuned(norm_columns_backward, (), COLUMNS_SAFE, UNSEARCHED)
