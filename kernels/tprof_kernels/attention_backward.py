"""Attention, backward: p is computed again from the log-sum-exp (Dao, arXiv:2307.08691, algorithm 2), in two kernels.

p = exp(scale * q k' - lse);  dv = p' do;  dp = do v';  ds = p * (dp - delta), delta = sum(do * out) per row;
dq = scale * ds k;  dk = scale * ds' q. Each kernel owns what it sums, so that nothing is added atomically and every run
gives the same bits. `do`, `out`, `lse` and all gradients are contiguous.
"""

from __future__ import annotations

import triton
import triton.language as tl

from tprof_kernels.attention_forward import BUCKETS, KEY, UNSPECIALIZED, pruned
from tprof_kernels.attention_tiles import (
    INF,
    LOG2E,
    PRECISION,
    is_visible,
    key_stretches,
    load_lse,
    load_tile,
    row_stretches,
    tile_offsets,
)
from tprof_kernels.products import dot
from tprof_kernels.tuned import Tuned


@triton.jit
def _add_dq(
    acc, q, do, lse, delta, k, v, k_offsets, v_offsets, k_n, v_n, start, stop, position, n_kv, dims, left, right, scale,
    LEFT: tl.constexpr, RIGHT: tl.constexpr, MASKED: tl.constexpr, DIM: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """Add ds k over the keys from start to stop."""
    BLOCK_D: tl.constexpr = acc.shape[1]
    for first in tl.range(start, stop, BLOCK_N):
        keys = first + tl.arange(0, BLOCK_N)
        k_tile = load_tile(k + first * k_n, k_offsets, keys, n_kv, dims, DIM, BLOCK_D, MASKED)
        v_tile = load_tile(v + first * v_n, v_offsets, keys, n_kv, dims, DIM, BLOCK_D, MASKED)
        none = tl.zeros([q.shape[0], BLOCK_N], tl.float32)
        scores = dot(q, tl.trans(k_tile), none, PRECISION) * scale
        if MASKED:
            seen = is_visible(position[:, None], keys[None, :], n_kv, left, right, LEFT, RIGHT)
            scores = tl.where(seen, scores, -INF)
        p = tl.exp2(scores - lse[:, None])
        dp = dot(do, tl.trans(v_tile), none, PRECISION)
        ds = p * (dp - delta[:, None])
        acc = dot(ds.to(k_tile.dtype), k_tile, acc, PRECISION)
    return acc


@triton.jit(do_not_specialize=UNSPECIALIZED)
def attention_dq(
    dq, delta, do, out, lse, q, k, v, n_q, n_kv, heads, group, left, right, scale,
    q_b, q_h, q_n, q_d, k_b, k_h, k_n, k_d, v_b, v_h, v_n, v_d, bucket,
    LEFT: tl.constexpr, RIGHT: tl.constexpr, DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """A program owns BLOCK_M rows of dq of one head and walks the keys, as the forward does.

    It holds do and out of its rows anyway, so it also writes their delta, which attention_dkdv then reads.
    """
    blocks = tl.cdiv(n_q, BLOCK_M)
    block = tl.program_id(0) % blocks
    if RIGHT:
        block = blocks - 1 - block
    head = tl.program_id(0) // blocks
    batch, h = head // heads, head % heads
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, BLOCK_D)
    lanes = tl.arange(0, BLOCK_N)

    dense = head * n_q * DIM + tile_offsets(rows, dims, DIM, 1)
    do_tile = load_tile(do, dense, rows, n_q, dims, DIM, BLOCK_D, CHECKED=True)
    out_tile = load_tile(out, dense, rows, n_q, dims, DIM, BLOCK_D, CHECKED=True)
    row_delta = tl.sum(do_tile.to(tl.float32) * out_tile.to(tl.float32), 1)
    tl.store(delta + head * n_q + rows, row_delta, rows < n_q)
    row_lse = load_lse(lse + head * n_q, rows, n_q)

    q_tile = load_tile(
        q + batch * q_b + h * q_h, tile_offsets(rows, dims, q_n, q_d), rows, n_q, dims, DIM, BLOCK_D, CHECKED=True
    )
    k += batch * k_b + h // group * k_h
    v += batch * v_b + h // group * v_h
    k_offsets, v_offsets = tile_offsets(lanes, dims, k_n, k_d), tile_offsets(lanes, dims, v_n, v_d)
    first = block * BLOCK_M + n_kv - n_q
    position = rows + n_kv - n_q
    low, full, high = key_stretches(first, n_kv, left, right, LEFT, RIGHT, BLOCK_M, BLOCK_N)

    acc = tl.zeros([BLOCK_M, BLOCK_D], tl.float32)
    if not LEFT:
        acc = _add_dq(
            acc, q_tile, do_tile, row_lse, row_delta, k, v, k_offsets, v_offsets, k_n, v_n, low, full, position, n_kv,
            dims, left, right, scale * LOG2E, LEFT, RIGHT, False, DIM, BLOCK_N,
        )  # fmt: skip
    acc = _add_dq(
        acc, q_tile, do_tile, row_lse, row_delta, k, v, k_offsets, v_offsets, k_n, v_n, full, high, position, n_kv,
        dims, left, right, scale * LOG2E, LEFT, RIGHT, True, DIM, BLOCK_N,
    )  # fmt: skip
    tl.store(dq + dense, (acc * scale).to(dq.dtype.element_ty), (rows < n_q)[:, None] & (dims < DIM)[None, :])


@triton.jit
def _add_dkdv(
    dk, dv, k, v, q, do, lse, delta, q_offsets, do_offsets, q_n, start, stop, keys, n_q, n_kv, dims, left, right, scale,
    LEFT: tl.constexpr, RIGHT: tl.constexpr, MASKED: tl.constexpr, DIM: tl.constexpr, BLOCK_M: tl.constexpr,
):  # fmt: skip
    """Add (ds' q, p' do) over the rows from start to stop. Scores are transposed, keys x rows: no p is turned over."""
    BLOCK_D: tl.constexpr = dk.shape[1]
    for first in tl.range(start, stop, BLOCK_M):
        rows = first + tl.arange(0, BLOCK_M)
        q_tile = load_tile(q + first * q_n, q_offsets, rows, n_q, dims, DIM, BLOCK_D, CHECKED=True)
        do_tile = load_tile(do + first * DIM, do_offsets, rows, n_q, dims, DIM, BLOCK_D, CHECKED=True)
        row_lse = load_lse(lse, rows, n_q)  # +inf past n_q: p is 0 there, without a mask
        row_delta = tl.load(delta + rows, rows < n_q, other=0.0)
        none = tl.zeros([k.shape[0], BLOCK_M], tl.float32)
        scores = dot(k, tl.trans(q_tile), none, PRECISION) * scale
        if MASKED:
            seen = is_visible(rows[None, :] + n_kv - n_q, keys[:, None], n_kv, left, right, LEFT, RIGHT)
            scores = tl.where(seen, scores, -INF)
        p = tl.exp2(scores - row_lse[None, :])
        dv = dot(p.to(do_tile.dtype), do_tile, dv, PRECISION)
        dp = dot(v, tl.trans(do_tile), none, PRECISION)
        ds = p * (dp - row_delta[None, :])
        dk = dot(ds.to(q_tile.dtype), q_tile, dk, PRECISION)
    return dk, dv


@triton.jit(do_not_specialize=UNSPECIALIZED)
def attention_dkdv(
    dk, dv, delta, do, lse, q, k, v, n_q, n_kv, heads, group, left, right, scale,
    q_b, q_h, q_n, q_d, k_b, k_h, k_n, k_d, v_b, v_h, v_n, v_d, bucket,
    LEFT: tl.constexpr, RIGHT: tl.constexpr, DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """A program owns BLOCK_N rows of dk and dv of one key head, and walks the rows of all `group` heads that share it.

    Its tiles of k and v stay on chip. Keys past n_kv are read as 0 and need no mask: what they sum up is not stored.
    """
    blocks = tl.cdiv(n_kv, BLOCK_N)
    first = tl.program_id(0) % blocks * BLOCK_N  # the first keys are seen by the most rows, so come first as they are
    kv_head = tl.program_id(0) // blocks  # of batch * key heads
    batch, h = kv_head // (heads // group), kv_head % (heads // group)
    keys = first + tl.arange(0, BLOCK_N)
    dims = tl.arange(0, BLOCK_D)
    lanes = tl.arange(0, BLOCK_M)

    k_tile = load_tile(
        k + batch * k_b + h * k_h, tile_offsets(keys, dims, k_n, k_d), keys, n_kv, dims, DIM, BLOCK_D, CHECKED=True
    )
    v_tile = load_tile(
        v + batch * v_b + h * v_h, tile_offsets(keys, dims, v_n, v_d), keys, n_kv, dims, DIM, BLOCK_D, CHECKED=True
    )
    q_offsets, do_offsets = tile_offsets(lanes, dims, q_n, q_d), tile_offsets(lanes, dims, DIM, 1)
    low, full, high = row_stretches(first, n_q, n_kv, left, right, LEFT, RIGHT, BLOCK_N, BLOCK_M)

    dk_sum = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    dv_sum = tl.zeros([BLOCK_N, BLOCK_D], tl.float32)
    for member in range(group):
        head = batch * heads + h * group + member
        q_head = q + batch * q_b + (h * group + member) * q_h
        do_head, lse_head, delta_head = do + head * n_q * DIM, lse + head * n_q, delta + head * n_q
        if RIGHT:
            dk_sum, dv_sum = _add_dkdv(
                dk_sum, dv_sum, k_tile, v_tile, q_head, do_head, lse_head, delta_head, q_offsets, do_offsets, q_n,
                low, tl.minimum(full, high), keys, n_q, n_kv, dims, left, right, scale * LOG2E,
                LEFT, RIGHT, True, DIM, BLOCK_M,
            )  # fmt: skip
        if not LEFT:
            dk_sum, dv_sum = _add_dkdv(
                dk_sum, dv_sum, k_tile, v_tile, q_head, do_head, lse_head, delta_head, q_offsets, do_offsets, q_n,
                full, high, keys, n_q, n_kv, dims, left, right, scale * LOG2E, LEFT, RIGHT, False, DIM, BLOCK_M,
            )  # fmt: skip
    at = kv_head * n_kv * DIM + tile_offsets(keys, dims, DIM, 1)
    mask = (keys < n_kv)[:, None] & (dims < DIM)[None, :]
    tl.store(dk + at, (dk_sum * scale).to(dk.dtype.element_ty), mask)
    tl.store(dv + at, dv_sum.to(dv.dtype.element_ty), mask)


# Two accumulators or two held tiles beside two tiles of scores: 8 warps share their registers.
SAFE = triton.Config({"BLOCK_M": 32, "BLOCK_N": 32}, num_warps=8, num_stages=1)
DQ_CANDIDATES = (
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=4, num_stages=2),  # short contexts: more programs
    triton.Config({"BLOCK_M": 128, "BLOCK_N": 64}, num_warps=8, num_stages=2),  # half the traffic for k and v
)
DKDV_CANDIDATES = (
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=8, num_stages=2),  # short contexts, and sm_80
    triton.Config({"BLOCK_M": 32, "BLOCK_N": 128}, num_warps=8, num_stages=2),  # half the traffic for q and do
    triton.Config({"BLOCK_M": 64, "BLOCK_N": 128}, num_warps=8, num_stages=2),  # and half the steps, for more registers
)  # not more: a third stage or 128 x 128 does not fit beside four tiles of 128 dimensions
DQ = Tuned(attention_dq, DQ_CANDIDATES, SAFE, BUCKETS, KEY, prune=pruned(SAFE))
DKDV = Tuned(attention_dkdv, DKDV_CANDIDATES, SAFE, BUCKETS, KEY, prune=pruned(SAFE))
