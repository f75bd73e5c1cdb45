"""The kernels of sum, mean, max and variance over one dimension, their candidates and buckets."""

from __future__ import annotations

import triton
import triton.language as tl

from tprof.buckets import BucketSet
from tprof_kernels.tuned import Tuned


@triton.jit
def _start(BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, HOW: tl.constexpr):
    """What lanes hold before the first value: the sum, maximum or mean, and the sum of squared differences from it."""
    first = -float("inf") if HOW == "max" else 0.0
    return tl.full([BLOCK_M, BLOCK_N], first, tl.float32), tl.zeros([BLOCK_M, BLOCK_N], tl.float32)


@triton.jit
def _join(value, squares, weight, HOW: tl.constexpr):
    """Lanes of a row into one, each standing for `weight` values."""
    if HOW == "max":
        top = tl.max(value, 1)
        bad = tl.sum((value != value).to(tl.int32), 1)  # noqa: PLR0124 - NaN, which tl.max passes over
        return tl.where(bad > 0, float("nan"), top), top
    if HOW == "var":  # Chan, Golub and LeVeque, 1979: within the lanes, and between their means
        mean = tl.sum(value * weight, 1) / tl.sum(weight, 1)
        away = value - mean[:, None]
        return mean, tl.sum(squares + weight * away * away, 1)
    return tl.sum(value, 1), tl.sum(squares, 1)


@triton.jit
def _store(out, value, squares, rows, M, N, correction, HOW: tl.constexpr):
    if HOW == "mean":
        value = value / N
    if HOW == "var":
        value = squares / tl.maximum(N - correction, 0).to(tl.float32)
    tl.store(out + rows, value.to(out.dtype.element_ty), rows < M)


@triton.jit
def _reduce(
    out, parts, x, M, N, x_m, x_n, length, correction,
    HOW: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Program (i, s) owns BLOCK_M rows and of each the `length` values from s * length on.

    Each lane keeps its own sum, and lanes are joined once after the loop. A lane of the variance keeps mean and squared
    differences (Welford, 1962), as E[x^2] - E[x]^2 cancels. `parts` is None where one program sees whole rows.
    """
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    begin = tl.program_id(1) * length
    end = tl.minimum(begin + length, N)
    lanes = tl.arange(0, BLOCK_N)
    value, squares = _start(BLOCK_M, BLOCK_N, HOW)
    count = 0.0
    for start in range(begin, end, BLOCK_N):
        cols = start + lanes
        mask = (rows < M)[:, None] & (cols < end)[None, :]
        here = tl.load(x + rows[:, None] * x_m + cols[None, :] * x_n, mask, other=0.0).to(tl.float32)
        if HOW == "var":
            count += 1.0
            away = tl.where(mask, here - value, 0.0)  # a lane past the end stays as it is
            value += away / count
            squares += tl.where(mask, away * (here - value), 0.0)
        elif HOW == "max":
            value = tl.where(mask & ((here > value) | (here != here)), here, value)  # noqa: PLR0124 - a NaN stays
        else:
            value += here
    weight = ((tl.maximum(end - begin - lanes, 0) + BLOCK_N - 1) // BLOCK_N).to(tl.float32)[None, :]
    value, squares = _join(value, squares, weight, HOW)
    if parts is None:
        _store(out, value, squares, rows, M, N, correction, HOW)
    else:
        at = parts + tl.program_id(1) * M + rows
        tl.store(at, value, rows < M)
        tl.store(at + tl.num_programs(1) * M, squares, rows < M)


# Which of the two sizes is the number of tokens, and so new in every request, differs; it is not specialized.


@triton.jit(do_not_specialize=["M", "correction", "bucket"])
def reduce_rows(
    out, parts, x, M, N, x_m, x_n, length, correction, bucket,
    HOW: tl.constexpr, BLOCK_N: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Values of a row are neighbours in memory: a program's tile is wide, or holds several short rows."""
    BLOCK_M: tl.constexpr = TILE // BLOCK_N if TILE > BLOCK_N else 1
    _reduce(out, parts, x, M, N, x_m, x_n, length, correction, HOW, BLOCK_M, BLOCK_N)


@triton.jit(do_not_specialize=["N", "length", "correction", "bucket"])
def reduce_columns(
    out, parts, x, M, N, x_m, x_n, length, correction, bucket,
    HOW: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Values of one step of all rows are neighbours: tiles are tall, and nothing is transposed."""
    _reduce(out, parts, x, M, N, x_m, x_n, length, correction, HOW, BLOCK_M, BLOCK_N)


@triton.jit(do_not_specialize=["M", "N", "length", "parts_count", "correction"])
def reduce_parts(
    out, parts, M, N, length, parts_count, correction, HOW: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_S: tl.constexpr,
):  # fmt: skip
    """Second pass of split rows: a program joins the parts of BLOCK_M rows."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    split = tl.arange(0, BLOCK_S)
    mask = (rows < M)[:, None] & (split < parts_count)[None, :]
    at = parts + split[None, :] * M + rows[:, None]
    value = tl.load(at, mask, other=-float("inf") if HOW == "max" else 0.0)
    squares = tl.load(at + parts_count * M, mask, other=0.0)
    weight = tl.maximum(tl.minimum(N - split * length, length), 0).to(tl.float32)[None, :]
    value, squares = _join(value, squares, weight, HOW)
    _store(out, value, squares, rows, M, N, correction, HOW)


BUCKETS = BucketSet.of(
    "reduce",
    ("reduce_*",),
    short={"N": "1..1024"},  # several rows per program
    medium={"N": "1025..65536"},
    long={"N": "65537..16777216"},
)
ROW_CANDIDATES = (
    triton.Config({"TILE": 2048}, num_warps=4),  # 16 values per thread, many programs
    triton.Config({"TILE": 4096}, num_warps=4),  # more bytes in flight per program, for 16-bit values
    triton.Config({"TILE": 8192}, num_warps=8),  # fewer steps of long rows
)
COLUMN_CANDIDATES = (
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 32}, num_warps=4),  # the most programs: 128-byte lines of 16-bit values
    triton.Config({"BLOCK_M": 128, "BLOCK_N": 32}, num_warps=4),  # longer stretches per line
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=8),  # deeper: half the steps
)  # not more of either: all read each value once, and only bytes in flight and the number of programs differ
# `HOW` is in no key: what is computed hardly matters beside what is read, and four searches would find the same.
ROWS = Tuned(reduce_rows, ROW_CANDIDATES, ROW_CANDIDATES[0], BUCKETS)
COLUMNS = Tuned(reduce_columns, COLUMN_CANDIDATES, COLUMN_CANDIDATES[0], BUCKETS)
