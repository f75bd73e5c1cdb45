"""Attention, forward: online softmax over blocks of keys (Dao, arXiv:2307.08691, algorithm 1)."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

from tprof.buckets import BucketSet
from tprof_kernels.attention_tiles import INF, LOG2E, PRECISION, is_visible, key_stretches, load_tile, tile_offsets
from tprof_kernels.products import dot
from tprof_kernels.tuned import Tuned

# Sizes and bounds change from request to request and no load is wider for their divisibility, so that none of them is
# specialized: a new length compiles nothing. Strides are: they decide on 16-byte loads, and belong to the model.
UNSPECIALIZED = ("n_q", "n_kv", "heads", "group", "left", "right", "bucket")


@triton.jit
def _attend(
    acc, total, top, q, k, v, k_offsets, v_offsets, k_n, v_n, start, stop, position, n_kv, dims, left, right, scale,
    LEFT: tl.constexpr, RIGHT: tl.constexpr, MASKED: tl.constexpr, DIM: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Fold the keys from start to stop into (sum of p * v, sum of p, maximum) of each row."""
    BLOCK_D: tl.constexpr = acc.shape[1]
    for first in tl.range(start, stop, BLOCK_N):
        keys = first + tl.arange(0, BLOCK_N)
        k_tile = load_tile(k + first * k_n, k_offsets, keys, n_kv, dims, DIM, BLOCK_D, MASKED)
        scores = dot(q, tl.trans(k_tile), tl.zeros([q.shape[0], BLOCK_N], tl.float32), PRECISION)
        if MASKED:
            seen = is_visible(position[:, None], keys[None, :], n_kv, left, right, LEFT, RIGHT)
            scores = tl.where(seen, scores, -INF)
        new = tl.maximum(top, tl.max(scores, 1) * scale)
        shift = tl.where(new == -INF, 0.0, new) if MASKED else new  # no key yet: -inf - -inf is NaN, where p must be 0
        p = tl.exp2(scores * scale - shift[:, None])  # one fused multiply-add and one exp2
        fade = tl.exp2(top - shift)
        total = total * fade + tl.sum(p, 1)
        v_tile = load_tile(v + first * v_n, v_offsets, keys, n_kv, dims, DIM, BLOCK_D, MASKED)
        acc = dot(p.to(v_tile.dtype), v_tile, acc * fade[:, None], PRECISION)
        top = new
    return acc, total, top


@triton.jit(do_not_specialize=UNSPECIALIZED)
def attention_forward(
    out, lse, q, k, v, n_q, n_kv, heads, group, left, right, scale,
    q_b, q_h, q_n, q_d, k_b, k_h, k_n, k_d, v_b, v_h, v_n, v_d, bucket,
    LEFT: tl.constexpr, RIGHT: tl.constexpr, DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """A program owns BLOCK_M query rows of one head and walks the keys, BLOCK_N at a time.

    The tile of q stays on chip; k and v are read once per program, and hit the L2 cache for the programs beside it,
    which have the same head or one of the `group` heads that share its keys. Programs of one head come one after the
    other, the longest first where rows see different numbers of keys, so that no long one is left at the end.
    """
    blocks = tl.cdiv(n_q, BLOCK_M)
    block = tl.program_id(0) % blocks
    if RIGHT:
        block = blocks - 1 - block
    head = tl.program_id(0) // blocks  # of batch * heads
    batch, h = head // heads, head % heads
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    lanes = tl.arange(0, BLOCK_N)

    q_tile = load_tile(
        q + batch * q_b + h * q_h, tile_offsets(rows, dims, q_n, q_d), rows, n_q, dims, DIM, BLOCK_D, CHECKED=True
    )
    k += batch * k_b + h // group * k_h
    v += batch * v_b + h // group * v_h
    k_offsets, v_offsets = tile_offsets(lanes, dims, k_n, k_d), tile_offsets(lanes, dims, v_n, v_d)
    first = block * BLOCK_M + n_kv - n_q  # where the first row stands
    position = rows + n_kv - n_q
    low, full, high = key_stretches(first, n_kv, left, right, LEFT, RIGHT, BLOCK_M, BLOCK_N)

    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)
    top = tl.full([BLOCK_M], -INF, tl.float32)
    if not LEFT:  # most of a long row's keys lie here, where nothing is masked
        acc, total, top = _attend(
            acc, total, top, q_tile, k, v, k_offsets, v_offsets, k_n, v_n, low, full, position, n_kv, dims, left, right,
            scale * LOG2E, LEFT, RIGHT, False, DIM, BLOCK_N,
        )  # fmt: skip
    acc, total, top = _attend(
        acc, total, top, q_tile, k, v, k_offsets, v_offsets, k_n, v_n, full, high, position, n_kv, dims, left, right,
        scale * LOG2E, LEFT, RIGHT, True, DIM, BLOCK_N,
    )  # fmt: skip

    total = tl.where(total == 0.0, 1.0, total)  # a row that sees no key: 0 / 1, and -inf + log2(1)
    tl.store(lse + head * n_q + rows, (top + tl.log2(total)) / LOG2E, rows < n_q)
    mask = (rows < n_q)[:, None] & (dims < DIM)[None, :]
    at = out + head * n_q * DIM + tile_offsets(rows, dims, DIM, 1)
    tl.store(at, (acc / total[:, None]).to(out.dtype.element_ty), mask)


# A bucket's search serves every later shape of it, so that a few rows of a decoding step must not decide for all.
BUCKETS = BucketSet.of(
    "attention",
    ("attention_forward", "attention_d*"),
    short={"n_kv": "..1024", "n_q": "128.."},  # few blocks per row: the edges and the launch count
    medium={"n_kv": "1025..8192", "n_q": "128.."},
    long={"n_kv": "8193..65536", "n_q": "128.."},  # the unmasked loop is nearly all of it
)
SAFE = triton.Config({"BLOCK_M": 32, "BLOCK_N": 32}, num_warps=4, num_stages=1)  # what float32 registers bear
CANDIDATES = (
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=4, num_stages=3),  # two programs per multiprocessor
    triton.Config({"BLOCK_M": 128, "BLOCK_N": 64}, num_warps=4, num_stages=3),  # up to 64 dimensions: one warp group
    triton.Config({"BLOCK_M": 128, "BLOCK_N": 64}, num_warps=8, num_stages=3),  # 128 dimensions: half the registers
    triton.Config({"BLOCK_M": 128, "BLOCK_N": 128}, num_warps=8, num_stages=2),  # fewer steps; fills the shared memory
)  # not more: 256 rows or four stages do not fit beside 128 dimensions, fewer rows than 64 starve the tensor cores
KEY = ("DIM", "LEFT", "RIGHT")
ACCUMULATORS = 64  # float32 values of a thread; 128 of them and a tile of scores spill


def pruned(safe):
    """In float32 the safe config, with no search; in 16 bits the candidates whose accumulators fit the registers."""

    def prune(configs, named_args, **kwargs: Any):
        if named_args["q"].element_size() == 4:
            return [safe]
        most = ACCUMULATORS * 32 // kwargs["BLOCK_D"]  # rows of a warp
        return [config for config in configs if config.kwargs["BLOCK_M"] <= most * config.num_warps]

    return prune


FORWARD = Tuned(attention_forward, CANDIDATES, SAFE, BUCKETS, KEY, prune=pruned(SAFE))
