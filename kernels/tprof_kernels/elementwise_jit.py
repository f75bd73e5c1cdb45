"""Triton functions of the elementwise fusion, with the derivatives of activations and dropout by element index."""

from __future__ import annotations

import triton
import triton.language as tl

from tprof.buckets import BucketSet
from tprof_kernels.activations import activate
from tprof_kernels.tuned import Tuned

WIDEST = 1024  # columns of a tile: two 16-byte loads of bfloat16 per lane of 4 warps; wider rows take several tiles


@triton.jit
def _slope(u, ACTIVATION: tl.constexpr):
    """Derivative of `activate` at u."""
    slope = tl.full(u.shape, 1.0, tl.float32)
    if ACTIVATION == "relu":
        slope = tl.where(u > 0, 1.0, 0.0)
    elif ACTIVATION == "silu":
        s = tl.sigmoid(u)
        slope = s * (1 + u * (1 - s))
    elif ACTIVATION == "gelu":  # of u * Phi(u): Phi(u) + u * phi(u)
        slope = 0.5 + 0.5 * tl.erf(u * 0.7071067811865476) + u * tl.exp(-0.5 * u * u) * 0.3989422804014327
    elif ACTIVATION == "gelu_tanh":  # of u * s, where s = sigmoid(z)
        near = tl.where(u > 10, 10.0, tl.where(u < -10, -10.0, u))  # beyond, s is 0 or 1, and u^3 may overflow
        s = tl.sigmoid(1.5957691216057308 * (near + 0.044715 * near * near * near))
        slope = s + near * s * (1 - s) * 1.5957691216057308 * (1 + 0.134145 * near * near)
    return slope


@triton.jit
def _kept(seed, threshold, rows, first, BLOCK_N: tl.constexpr):
    """Which elements of a tile dropout keeps: Philox 4x32-10 (Salmon et al., SC'11) of seed, row and column.

    One call gives four words, for the columns 4q to 4q + 3 of a row (counter: q, row). The words of a quad are put side
    by side, so the mask is the same wherever a tile begins, and the backward draws it again instead of reading it.
    """
    quads = first // 4 + tl.arange(0, BLOCK_N // 4)[None, :]
    zero = (rows + quads) * 0
    a, b, c, d = tl.philox(seed, zero + quads, zero + rows, zero, zero)
    words = tl.join(tl.join(a, c), tl.join(b, d))  # last dimension: a or b, c or d; flattened: a, b, c, d
    words = words.reshape(rows.shape[0], BLOCK_N)
    return (words >> 1).to(tl.int32) >= threshold


@triton.jit(do_not_specialize=["M", "seed", "threshold", "bucket"])
def fused_forward(
    y, x, bias, residual, M, N, x_row, x_col, residual_row, residual_col, factor, seed, threshold, bucket,
    ACTIVATION: tl.constexpr, DROPOUT: tl.constexpr, BLOCK_N: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """A program owns a tile of TILE / BLOCK_N rows and BLOCK_N columns; neighbours own neighbouring columns.

    The bias is loaded once for all its rows. Grids are one-dimensional: CUDA's second dimension ends at 65,535.
    """
    ROWS: tl.constexpr = TILE // BLOCK_N if TILE > BLOCK_N else 1
    across = tl.cdiv(N, BLOCK_N)
    first = tl.program_id(0) % across * BLOCK_N
    rows = tl.program_id(0) // across * ROWS + tl.arange(0, ROWS)[:, None]
    cols = first + tl.arange(0, BLOCK_N)[None, :]
    mask = (rows < M) & (cols < N)
    u = tl.load(x + rows * x_row + cols * x_col, mask, other=0.0).to(tl.float32)
    if bias is not None:
        u += tl.load(bias + cols, cols < N, other=0.0).to(tl.float32)
    value = activate(u, ACTIVATION) * factor  # scale / (1 - p)
    if DROPOUT:
        value = tl.where(_kept(seed, threshold, rows, first, BLOCK_N), value, 0.0)
    if residual is not None:
        value += tl.load(residual + rows * residual_row + cols * residual_col, mask, other=0.0).to(tl.float32)
    tl.store(y + rows * N + cols, value, mask)


@triton.jit(do_not_specialize=["M", "seed", "threshold", "count", "bucket"])
def fused_backward(
    dx, dbias, x, bias, dy, M, N, x_row, x_col, dy_row, dy_col, factor, seed, threshold, count, bucket,
    ACTIVATION: tl.constexpr, DROPOUT: tl.constexpr, BLOCK_N: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Program (i, j) owns the columns of block j, in every `count`-th tile of rows from the i-th; row i of `dbias`.

    The activation's input is computed again from x and bias, and the mask is drawn again: nothing but x was kept.
    """
    ROWS: tl.constexpr = TILE // BLOCK_N if TILE > BLOCK_N else 1
    across = tl.cdiv(N, BLOCK_N)
    program = tl.program_id(0) // across
    first = tl.program_id(0) % across * BLOCK_N
    cols = first + tl.arange(0, BLOCK_N)[None, :]
    added = tl.zeros([1, BLOCK_N], tl.float32)
    if bias is not None:
        added = tl.load(bias + cols, cols < N, other=0.0).to(tl.float32)
    total = tl.zeros([ROWS, BLOCK_N], tl.float32)
    for top in range(program * ROWS, M, count * ROWS):
        rows = top + tl.arange(0, ROWS)[:, None]
        mask = (rows < M) & (cols < N)
        u = tl.load(x + rows * x_row + cols * x_col, mask, other=0.0).to(tl.float32) + added
        grad = tl.load(dy + rows * dy_row + cols * dy_col, mask, other=0.0).to(tl.float32) * factor
        grad *= _slope(u, ACTIVATION)
        if DROPOUT:
            grad = tl.where(_kept(seed, threshold, rows, first, BLOCK_N), grad, 0.0)
        tl.store(dx + rows * N + cols, grad, mask)
        total += grad
    if dbias is not None:
        tl.store(dbias + program * N + cols, tl.sum(total, 0)[None, :], cols < N)


# As in norm_jit.py: the number of rows divides the work among programs, so M is part of a bucket.
BUCKETS = BucketSet.of(
    "elementwise",
    ("fused_*",),
    decode={"M": "1..256", "N": "1024..65536"},
    prefill={"M": "257..", "N": "1024..65536"},
)
CANDIDATES = (
    triton.Config({"TILE": 1024}, num_warps=4),  # 8 values per thread, one 16-byte load: the best occupancy
    triton.Config({"TILE": 2048}, num_warps=4),  # two loads in flight per thread, and each bias serves two rows
)  # not more: 4096 elements of erf's temporaries spill, 8 warps exchange Philox's words through shared memory, and a
# smaller tile is bound by the launch of its programs
SAFE = triton.Config({"TILE": 1024}, num_warps=4)
KEY = ("BLOCK_N", "ACTIVATION", "DROPOUT")  # fixed by the model

FORWARD = Tuned(fused_forward, CANDIDATES, SAFE, BUCKETS, KEY)
BACKWARD = Tuned(fused_backward, CANDIDATES, SAFE, BUCKETS, KEY)
