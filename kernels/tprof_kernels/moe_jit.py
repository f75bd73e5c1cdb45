"""The Triton functions of the mixture of experts. Rows are sorted by expert, and every block of rows has one expert."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from tprof.buckets import BucketSet
from tprof_kernels.products import dot
from tprof_kernels.tuned import Tuned


@triton.jit
def moe_permute(out, x, source, D, x_m, x_d, BLOCK_D: tl.constexpr):
    """A program owns one row of the result and copies its token's; a row of padding becomes 0."""
    row = tl.program_id(0)
    token = tl.load(source + row)
    width = tl.where(token < 0, 0, D)
    for first in range(0, D, BLOCK_D):
        cols = first + tl.arange(0, BLOCK_D)
        value = tl.load(x + token * x_m + cols * x_d, cols < width, other=0.0)
        tl.store(out + row * D + cols, value, cols < D)


@triton.jit
def moe_combine(out, rows, weights, slot, D, r_m, r_d, w_m, w_k, TOPK: tl.constexpr, BLOCK_D: tl.constexpr):
    """A program owns one token and sums the rows of its TOPK choices: gathering, not scattering, needs no atomics."""
    token = tl.program_id(0)
    for first in range(0, D, BLOCK_D):
        cols = first + tl.arange(0, BLOCK_D)
        total = tl.zeros([BLOCK_D], tl.float32)
        for choice in tl.static_range(TOPK):
            row = tl.load(slot + token * TOPK + choice)
            weight = tl.load(weights + token * w_m + choice * w_k, row >= 0, other=0.0).to(tl.float32)
            value = tl.load(rows + row * r_m + cols * r_d, cols < tl.where(row < 0, 0, D), other=0.0)
            total += weight * value.to(tl.float32)
        tl.store(out + token * D + cols, total.to(out.dtype.element_ty), cols < D)


@triton.jit(do_not_specialize=["rows", "bucket"])
def moe_matmul(
    out, x, weights, expert, rows, N, K, x_m, x_k, w_e, w_k, w_n, bucket,
    BLOCK_M: tl.constexpr, EVEN_K: tl.constexpr, BLOCK_N: tl.constexpr, BYTES_K: tl.constexpr,
):  # fmt: skip
    """A program owns a BLOCK_M x BLOCK_N tile of the result; its block of rows says by whose weights it multiplies.

    One launch serves all experts, however many rows each has. The number of blocks is an upper bound, so that the host
    need not know the counts: blocks without an expert have no steps to do, and store 0.
    """
    # In groups of 8 blocks of rows, down and then right: programs that run at one time share rows and weights in L2.
    down, across = rows // BLOCK_M, tl.cdiv(N, BLOCK_N)
    group, inside = tl.program_id(0) // (8 * across), tl.program_id(0) % (8 * across)
    height = tl.minimum(down - group * 8, 8)
    block, first = group * 8 + inside % height, inside // height * BLOCK_N
    owner = tl.load(expert + block)

    BLOCK_K: tl.constexpr = BYTES_K * 8 // x.dtype.element_ty.primitive_bitwidth
    at = block * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = first + tl.arange(0, BLOCK_N)
    ks = tl.arange(0, BLOCK_K)
    x += at[:, None] * x_m + ks[None, :] * x_k
    weights += owner.to(tl.int64) * w_e  # all experts together may exceed 2^31 elements
    weights += ks[:, None] * w_k + cols[None, :] * w_n
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, tl.where(owner < 0, 0, K), BLOCK_K):
        if EVEN_K:  # rows need no mask: they are a multiple of BLOCK_M
            x_tile, w_tile = tl.load(x), tl.load(weights, (cols < N)[None, :], other=0.0)
        else:
            x_tile = tl.load(x, (ks < K - k)[None, :], other=0.0)
            w_tile = tl.load(weights, (ks < K - k)[:, None] & (cols < N)[None, :], other=0.0)
        acc = dot(x_tile, w_tile, acc, "tf32x3")
        x += BLOCK_K * x_k
        weights += BLOCK_K * w_k
    tl.store(out + at[:, None] * N + cols[None, :], acc.to(out.dtype.element_ty), (cols < N)[None, :])


@triton.jit(do_not_specialize=["rows", "bucket"])
def moe_weight_gradient(
    dw, x, dy, edges, rows, N, K, x_m, x_k, y_m, y_n, bucket,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """A program owns a BLOCK_K x BLOCK_N tile of one expert's x' dy, and walks that expert's rows, from edge to edge.

    Each sum has one owner: nothing is added atomically. An expert without rows gets 0. `rows` only tells the bucket.
    """
    across = tl.cdiv(N, BLOCK_N)
    tiles = tl.cdiv(K, BLOCK_K) * across
    expert, tile = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    ks = tile // across * BLOCK_K + tl.arange(0, BLOCK_K)
    cols = tile % across * BLOCK_N + tl.arange(0, BLOCK_N)
    MOST: tl.constexpr = 1024 // x.dtype.element_ty.primitive_bitwidth  # more float32 rows in a step spill
    STEP: tl.constexpr = BLOCK_M if BLOCK_M < MOST else MOST  # noqa: FURB136 - no `min` of constants in Triton
    at = tl.arange(0, STEP)
    first, last = tl.load(edges + expert) * BLOCK_M, tl.load(edges + expert + 1) * BLOCK_M
    acc = tl.zeros([BLOCK_K, BLOCK_N], tl.float32)
    for row in range(first, last, STEP):
        x_tile = tl.load(x + (row + at)[:, None] * x_m + ks[None, :] * x_k, (ks < K)[None, :], other=0.0)
        y_tile = tl.load(dy + (row + at)[:, None] * y_m + cols[None, :] * y_n, (cols < N)[None, :], other=0.0)
        acc = dot(tl.trans(x_tile), y_tile, acc, "tf32x3")
    dw += expert.to(tl.int64) * N * K + ks[:, None] * N + cols[None, :]
    tl.store(dw, acc.to(dw.dtype.element_ty), (ks < K)[:, None] & (cols < N)[None, :])


BUCKETS = BucketSet.of(
    "moe",
    ("moe_*",),
    decode={"rows": "1..4096"},  # a few rows for each expert: bound by reading the weights
    prefill={"rows": "4097..131072"},  # full blocks: bound by products
)
SAFE = triton.Config({"BLOCK_N": 64, "BYTES_K": 64}, num_warps=4, num_stages=2)
CANDIDATES = (
    triton.Config({"BLOCK_N": 64, "BYTES_K": 128}, num_warps=4, num_stages=4),  # many small programs: few rows
    triton.Config({"BLOCK_N": 128, "BYTES_K": 128}, num_warps=4, num_stages=3),  # the same, with half the reads of x
    triton.Config({"BLOCK_N": 128, "BYTES_K": 128}, num_warps=8, num_stages=3),  # full blocks
    triton.Config({"BLOCK_N": 256, "BYTES_K": 128}, num_warps=8, num_stages=3),  # full blocks: most use of each byte
)  # not more: the height of a tile is the routing's, and a wider one does not fit the registers
EVEN_STEP = 128  # bytes of K that every config divides
ACCUMULATORS = 128  # float32 values of a thread; in float32 half, since the parts of products take the rest


def _prune(configs, named_args, **kwargs: Any):
    """Tiles that fit the registers; 8 warps only on tiles that give each 16 rows or more."""
    height, most = kwargs["BLOCK_M"], ACCUMULATORS // (2 if named_args["x"].element_size() == 4 else 1)
    return [
        config
        for config in configs
        if height * config.kwargs["BLOCK_N"] <= most * 32 * config.num_warps and (config.num_warps == 4 or height >= 64)
    ]


MATMUL = Tuned(moe_matmul, CANDIDATES, SAFE, BUCKETS, ("BLOCK_M", "N", "K"), prune=_prune)

GRADIENT_SAFE = triton.Config({"BLOCK_N": 64, "BLOCK_K": 64}, num_warps=4, num_stages=1)
GRADIENT_CANDIDATES = (
    triton.Config({"BLOCK_N": 64, "BLOCK_K": 64}, num_warps=4, num_stages=3),  # many programs, for small experts
    triton.Config({"BLOCK_N": 128, "BLOCK_K": 128}, num_warps=8, num_stages=2),  # half the reads of x and dy
)  # not more: the result is large, so that programs abound, and a step is no deeper than a block of rows


GRADIENT = Tuned(moe_weight_gradient, GRADIENT_CANDIDATES, GRADIENT_SAFE, BUCKETS, ("BLOCK_M", "N", "K"))
