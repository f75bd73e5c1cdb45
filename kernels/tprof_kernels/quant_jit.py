"""Triton functions of quantization to 8 bits.

A group is a run of columns of one row that shares a scale: whole rows, or blocks of columns. What fits a block is read
once: the group's largest magnitude is known before its values leave the registers. A scale that spans more (a long row,
the whole tensor) takes two reads: `group_largest`, a small maximum in torch, then `quantize_scaled`.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tprof.buckets import BucketSet
from tprof_kernels.tiles import fitting
from tprof_kernels.tuned import Tuned

ONE_BLOCK = 32768  # columns of a group that one program holds: 64 float32 values per thread of 16 warps
WIDEST = 1024  # columns of a tile where the scale is known: one load of 8 values per lane of 4 warps


@triton.jit
def _lines(groups, N, columns, across, BLOCK_N: tl.constexpr, TILE: tl.constexpr):
    """The tile of this program: TILE / BLOCK_N lines, at least one, each a run of `columns` columns of some row.

    Lines are counted along the rows, `across` to each; the last of a row may be narrower.
    """
    ROWS: tl.constexpr = TILE // BLOCK_N if TILE > BLOCK_N else 1
    group = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    lane = tl.arange(0, BLOCK_N)[None, :]
    cols = group % across * columns + lane
    return group, group // across, cols, (group < groups) & (lane < columns) & (cols < N)


@triton.jit
def _encode(value, scale, q, LARGEST: tl.constexpr):
    """The value over scale in q's dtype, saturating, rounded to the nearest even; 0 where the scale is not finite."""
    value = tl.where(scale < float("inf"), value * tl.div_rn(1.0, scale), 0.0)  # a NaN compares as false
    value = tl.minimum(tl.maximum(value, -LARGEST), LARGEST)
    if q.dtype.element_ty == tl.int8:
        value = (value + 12582912.0) - 12582912.0  # 1.5 * 2^23, whose neighbours are one apart: the sum is rounded
    return value.to(q.dtype.element_ty)


@triton.jit
def _magnitude(value, mask):
    """|value|, where NaN counts as the largest: bits of positive floats are in the order of the floats, NaN above inf.

    A maximum of floats would drop a NaN, and with it the sign that something overflowed.
    """
    bits = value.to(tl.int32, bitcast=True) & 0x7FFFFFFF
    return tl.max(tl.where(mask, bits, 0), 1)[:, None].to(tl.float32, bitcast=True)


@triton.jit
def _prologue(value, other, at, cols, mask, N, eps, PROLOGUE: tl.constexpr):
    """What the neighbour would have written: kept in float32, and never in memory."""
    if PROLOGUE == "silu_mul":  # other: the second operand
        value = value * tl.sigmoid(value) * tl.load(other + at, mask, other=0.0).to(tl.float32)
    if PROLOGUE == "rms_norm":  # other: the weight; a group is a row
        value *= tl.rsqrt(tl.sum(value * value, 1)[:, None] / N + eps)
        value *= tl.load(other + cols, cols < N, other=0.0).to(tl.float32)
    return value


@triton.jit(do_not_specialize=["groups", "bucket"])
def quantize_groups(
    q, scale, x, other, groups, N, columns, across, x_row, x_col, other_row, other_col, eps, bucket,
    LARGEST: tl.constexpr, PROLOGUE: tl.constexpr, BLOCK_N: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Each line of the tile is a group, so a block of 128 columns costs no more than a row of 128."""
    group, row, cols, mask = _lines(groups, N, columns, across, BLOCK_N, TILE)
    value = tl.load(x + row * x_row + cols * x_col, mask, other=0.0).to(tl.float32)
    value = _prologue(value, other, row * other_row + cols * other_col, cols, mask, N, eps, PROLOGUE)
    step = _magnitude(value, mask) * (1.0 / LARGEST)
    step = tl.where(step < 1.1754943508222875e-38, 1.1754943508222875e-38, step)  # 2^-126, whose inverse is finite
    tl.store(scale + group, step, group < groups)
    tl.store(q + row * N + cols, _encode(value, step, q, LARGEST), mask)


@triton.jit(do_not_specialize=["groups", "bucket"])
def group_largest(
    largest, x, groups, N, across, x_row, x_col, bucket,
    BLOCK_N: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """The largest magnitude of each line; no atomics, so what comes first does not matter."""
    group, row, cols, mask = _lines(groups, N, BLOCK_N, across, BLOCK_N, TILE)
    value = tl.load(x + row * x_row + cols * x_col, mask, other=0.0).to(tl.float32)
    tl.store(largest + group, _magnitude(value, mask), group < groups)


@triton.jit(do_not_specialize=["groups", "bucket"])
def quantize_scaled(
    q, x, scale, groups, N, across, x_row, x_col, scale_row, bucket,
    LARGEST: tl.constexpr, BLOCK_N: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Lines take the scale of their row; scale_row is 0 where the whole tensor has one."""
    group, row, cols, mask = _lines(groups, N, BLOCK_N, across, BLOCK_N, TILE)
    value = tl.load(x + row * x_row + cols * x_col, mask, other=0.0).to(tl.float32)
    step = tl.load(scale + row * scale_row, group < groups, other=1.0)
    tl.store(q + row * N + cols, _encode(value, step, q, LARGEST), mask)


@triton.jit(do_not_specialize=["groups", "bucket"])
def dequantize_lines(
    x, q, scale, groups, N, across, q_row, q_col, scale_row, bucket,
    COLUMNS: tl.constexpr, BLOCK_N: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """COLUMNS is the width of a group, or 0 for one scale per row or tensor.

    It is a constant, so that division by a power of two is a shift, and Triton knows that neighbours share a scale.
    """
    _, row, cols, mask = _lines(groups, N, BLOCK_N, across, BLOCK_N, TILE)
    value = tl.load(q + row * q_row + cols * q_col, mask, other=0.0).to(tl.float32)
    at = row * scale_row + cols // COLUMNS if COLUMNS else row * scale_row + cols * 0
    tl.store(x + row * N + cols, value * tl.load(scale + at, mask, other=0.0), mask)


# M: as in norm_jit.py, the winner for one token is not that for thousands.
BUCKETS = BucketSet.of(
    "quant",
    ("quantize_*", "dequantize_*", "group_largest"),
    decode={"M": "1..256", "N": "1024.."},
    prefill={"M": "257..", "N": "1024.."},
)
CANDIDATES = (
    triton.Config({"TILE": 1024}, num_warps=4),  # the best occupancy: for blocks of columns and short rows
    triton.Config({"TILE": 4096}, num_warps=8),  # 16 values per thread: more bytes in flight per program
    triton.Config({"TILE": 1024}, num_warps=16),  # rows of 4,096 columns and more, whose values fill 8 warps' registers
)  # not more: one read, one write and one reduction leave nothing else to choose
LINE_CANDIDATES = (
    triton.Config({"TILE": 1024}, num_warps=4),  # 8 values per thread, one 16-byte load: the best occupancy
    triton.Config({"TILE": 4096}, num_warps=4),  # four loads in flight per thread, a quarter of the programs
)  # not more: the larger one already takes 8 bits in loads as wide as 16 bits in the smaller
SAFE = triton.Config({"TILE": 1024}, num_warps=8)

GROUPS = Tuned(quantize_groups, CANDIDATES, SAFE, BUCKETS, ("BLOCK_N", "PROLOGUE"), prune=fitting(8, 64))
LARGEST = Tuned(group_largest, LINE_CANDIDATES, SAFE, BUCKETS)
SCALED = Tuned(quantize_scaled, LINE_CANDIDATES, SAFE, BUCKETS)
DEQUANTIZE = Tuned(dequantize_lines, LINE_CANDIDATES, SAFE, BUCKETS, ("COLUMNS",))
