"""Attention of one new token per sequence over a paged cache of keys and values (vLLM's layout), split along the keys.

A step of decoding reads every key and value once and computes little, so it is bound by memory: what counts is that
enough programs read at one time. Few long sequences are therefore split (Flash-Decoding), and a second kernel joins the
parts.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
import triton
import triton.language as tl

from tprof.buckets import BucketSet
from tprof.kernelspec import Cost, Inputs, KernelSpec
from tprof_kernels.attention_tiles import INF, LOG2E, PRECISION, check_heads
from tprof_kernels.checks import FLOATS, check_device, check_dtype, check_shape, check_size
from tprof_kernels.draw import Draw
from tprof_kernels.products import dot
from tprof_kernels.tuned import Tuned

if TYPE_CHECKING:
    from collections.abc import Mapping

PROGRAMS = 512  # that read at one time; fewer leave multiprocessors of the largest GPUs idle, more cost joins
SPLITS = 32  # parts of a sequence at most; the kernel that joins them reads so many at once
SPLIT_KEYS = 256  # keys of a part at least: a shorter one is not worth its join


@triton.jit(do_not_specialize=["max_pages", "kv_heads", "splits", "bucket"])
def attention_decode(
    out, lse, q, k_cache, v_cache, block_table, lengths, max_pages, kv_heads, splits, scale,
    q_b, q_h, q_d, k_p, k_n, k_h, k_d, v_p, v_n, v_h, v_d, bucket,
    GROUP: tl.constexpr, DIM: tl.constexpr, BLOCK_D: tl.constexpr, PAGE: tl.constexpr,
    BLOCK_G: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    """A program owns one part of one sequence and one key head: its GROUP query heads are the rows of the tile.

    So every key is read once for all heads that share it. Rows are padded to the 16 that tensor cores take. The page of
    each key comes from the block table; pages are widened to 64 bits, since a cache may exceed 2^31 elements.
    """
    part = tl.program_id(0) % splits
    h = tl.program_id(0) // splits % kv_heads
    sequence = tl.program_id(0) // splits // kv_heads
    length = tl.load(lengths + sequence)
    keys_per_part = tl.cdiv(tl.cdiv(length, splits), BLOCK_N) * BLOCK_N
    stop = tl.minimum(length, (part + 1) * keys_per_part)

    members = tl.arange(0, BLOCK_G)
    dims = tl.arange(0, BLOCK_D)
    mask = (members < GROUP)[:, None] & (dims < DIM)[None, :]
    heads = h * GROUP + members
    tile = tl.load(q + sequence * q_b + heads[:, None] * q_h + dims[None, :] * q_d, mask, other=0.0)
    acc = tl.zeros([BLOCK_G, BLOCK_D], tl.float32)
    total = tl.zeros([BLOCK_G], tl.float32)
    top = tl.full([BLOCK_G], -INF, tl.float32)
    for first in range(part * keys_per_part, stop, BLOCK_N):
        keys = first + tl.arange(0, BLOCK_N)
        read = keys < stop  # entries of the table past the length may be anything
        page = tl.load(block_table + sequence * max_pages + keys // PAGE, read, other=0).to(tl.int64)
        kv_mask = read[:, None] & (dims < DIM)[None, :]
        k_row = page * k_p + keys % PAGE * k_n + h * k_h
        k_tile = tl.load(k_cache + k_row[:, None] + dims[None, :] * k_d, kv_mask, other=0.0)
        scores = dot(tile, tl.trans(k_tile), tl.zeros([BLOCK_G, BLOCK_N], tl.float32), PRECISION) * (scale * LOG2E)
        scores = tl.where(read[None, :], scores, -INF)
        new = tl.maximum(top, tl.max(scores, 1))  # finite: a block has at least one key
        p = tl.exp2(scores - new[:, None])
        fade = tl.exp2(top - new)
        total = total * fade + tl.sum(p, 1)
        v_row = page * v_p + keys % PAGE * v_n + h * v_h
        v_tile = tl.load(v_cache + v_row[:, None] + dims[None, :] * v_d, kv_mask, other=0.0)
        acc = dot(p.to(v_tile.dtype), v_tile, acc * fade[:, None], PRECISION)
        top = new

    total = tl.where(total == 0.0, 1.0, total)  # no keys: 0, and a log-sum-exp of -inf
    row = (sequence * kv_heads * GROUP + heads) * splits + part
    tl.store(lse + row, top + tl.log2(total), members < GROUP)
    at = out + row[:, None] * DIM + dims[None, :]
    tl.store(at, (acc / total[:, None]).to(out.dtype.element_ty), mask)


@triton.jit(do_not_specialize=["splits"])
def attention_decode_join(out, parts, lse, splits, DIM: tl.constexpr, BLOCK_D: tl.constexpr, SPLITS: tl.constexpr):
    """A program owns one head of one sequence: the mean of its parts, weighted by the sum of exp of each."""
    row = tl.program_id(0)
    part = tl.arange(0, SPLITS)
    dims = tl.arange(0, BLOCK_D)
    weight = tl.load(lse + row * splits + part, part < splits, other=-INF)
    top = tl.max(weight, 0)
    weight = tl.exp2(weight - tl.where(top == -INF, 0.0, top))  # no keys at all: every weight is 0
    at = parts + (row * splits + part)[:, None] * DIM + dims[None, :]
    value = tl.load(at, (part < splits)[:, None] & (dims < DIM)[None, :], other=0.0)
    total = tl.sum(weight, 0)
    value = tl.sum(value * weight[:, None], 0) / tl.where(total == 0.0, 1.0, total)
    tl.store(out + row * DIM + dims, value.to(out.dtype.element_ty), dims < DIM)


BUCKETS = BucketSet.of(
    "decode",
    ("attention_decode*",),
    few={"q[0]": "..8"},  # sequences: split, so that each part is short
    some={"q[0]": "9..64"},
    many={"q[0]": "65..512"},  # whole sequences; programs outnumber what runs at one time
)
SAFE = triton.Config({"BLOCK_N": 32}, num_warps=4, num_stages=1)
CANDIDATES = (
    triton.Config({"BLOCK_N": 64}, num_warps=4, num_stages=3),  # small programs: several per multiprocessor
    triton.Config({"BLOCK_N": 128}, num_warps=4, num_stages=2),  # as many bytes in flight in fewer steps
    triton.Config({"BLOCK_N": 128}, num_warps=8, num_stages=3),  # most bytes in flight, where programs are few
)  # not more: the tile of queries is as high as the group, and the rest is waiting for memory


def _prune(configs, named_args, **_: Any):
    """In float32 the safe config: four bytes a value fill the shared memory in half the keys."""
    return [SAFE] if named_args["q"].element_size() == 4 else configs


DECODE = Tuned(attention_decode, CANDIDATES, SAFE, BUCKETS, ("DIM", "GROUP"), prune=_prune)


def paged_attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    *,
    scale: float | None = None,
) -> torch.Tensor:
    """softmax(scale * q k') v of one token per sequence over the keys that its pages hold. No gradients.

    How a sequence is split follows from shapes alone, never from `lengths`: no device is waited for, and a CUDA graph
    that captured a call serves every later length.

    Args:
        q: (batch, heads, dim); float32, float16 or bfloat16; any strides. dim is at most 128.
        k_cache: (pages, page, kv_heads, dim), same dtype, of any size and strides; a page holds a power of two of keys,
            as 16. heads is a multiple of kv_heads.
        v_cache: as k_cache.
        block_table: (batch, max_pages) int32; the pages of each sequence in order. Entries past its length may be
            anything.
        lengths: (batch,) int32; the keys of each sequence, from 0 (the result is 0) to max_pages * page.
        scale: factor of the scores; 1 / sqrt(dim) if None.

    Returns:
        (batch, heads, dim) in q's dtype, contiguous.

    Raises:
        TypeError: a dtype is none of these.
        ValueError: shapes do not fit, dim is above 128, or a tensor is too large or not on one GPU.
    """
    scale = 1 / math.sqrt(max(1, q.shape[-1])) if scale is None else scale
    return torch.ops.tprof_kernels.paged_attention(q, k_cache, v_cache, block_table, lengths, scale)


@torch.library.custom_op("tprof_kernels::paged_attention", mutates_args=())
def _paged(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_table: torch.Tensor,
    lengths: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    _check(q, k_cache, v_cache, block_table, lengths)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    check_size(out=out)
    if out.numel() == 0:
        return out
    (batch, heads, dim), (page, kv_heads) = q.shape, k_cache.shape[1:3]
    pages = block_table.shape[1]
    splits = min(SPLITS, triton.cdiv(pages * page, SPLIT_KEYS), triton.cdiv(PROGRAMS, batch * kv_heads))
    splits = max(1, splits)
    padded, group = max(16, triton.next_power_of_2(dim)), heads // kv_heads
    lse = torch.empty((batch, heads, splits), dtype=torch.float32, device=q.device)
    parts = out if splits == 1 else torch.empty((*lse.shape, dim), dtype=torch.float32, device=q.device)
    DECODE.launch(
        (batch * kv_heads * splits,), {"q[0]": batch},
        parts, lse, q, k_cache, v_cache, block_table.contiguous(), lengths.contiguous(), pages, kv_heads, splits, scale,
        *q.stride(), *k_cache.stride(), *v_cache.stride(),
        GROUP=group, DIM=dim, BLOCK_D=padded, PAGE=page, BLOCK_G=max(16, triton.next_power_of_2(group)),
    )  # fmt: skip
    if splits > 1:
        attention_decode_join[(batch * heads,)](out, parts, lse, splits, DIM=dim, BLOCK_D=padded, SPLITS=SPLITS)
    return out


@_paged.register_fake
def _(q: Any, k_cache: Any, v_cache: Any, block_table: Any, lengths: Any, scale: float) -> Any:
    return q.new_empty(q.shape)


def _check(
    q: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, block_table: torch.Tensor, lengths: torch.Tensor
) -> None:
    check_dtype(FLOATS, q=q)
    check_dtype((q.dtype,), k_cache=k_cache, v_cache=v_cache)
    check_dtype((torch.int32,), block_table=block_table, lengths=lengths)
    check_device(q=q, k_cache=k_cache, v_cache=v_cache, block_table=block_table, lengths=lengths)
    check_size(q=q, block_table=block_table)
    if q.ndim != 3 or k_cache.ndim != 4 or block_table.ndim != 2:
        raise ValueError(
            "q must be (batch, heads, dim), k_cache (pages, page, kv_heads, dim) and block_table (batch, max_pages), "
            f"but they are {tuple(q.shape)}, {tuple(k_cache.shape)} and {tuple(block_table.shape)}"
        )
    batch, heads, dim = q.shape
    pages, page, kv_heads, _ = k_cache.shape
    check_shape("k_cache", k_cache, (pages, page, kv_heads, dim))
    check_shape("v_cache", v_cache, tuple(k_cache.shape))
    check_shape("block_table", block_table, (batch, block_table.shape[1]))
    check_shape("lengths", lengths, (batch,))
    check_heads(heads, kv_heads, dim)
    if page != triton.next_power_of_2(page):
        raise ValueError(f"a page holds {page} keys, but must hold a power of two; allocate the cache in pages of 16")


# ---- what it promises


def _plain(
    q: Any, k_cache: Any, v_cache: Any, block_table: Any, lengths: Any, *, scale: float | None = None
) -> torch.Tensor:
    """Reference and fallback: gathers all pages, then all scores at once, in float32 or, of float64, in float64."""
    wide = torch.promote_types(q.dtype, torch.float32)
    heads, dim = q.shape[1:]
    held = torch.arange(block_table.shape[1] * k_cache.shape[1], device=q.device) < lengths[:, None]  # (batch, keys)
    pages = block_table.where(held[:, :: k_cache.shape[1]], 0).long()
    group = heads // k_cache.shape[2]
    keys, values = (
        cache[pages].flatten(1, 2).to(wide).where(held[..., None, None], 0).movedim(2, 1).repeat_interleave(group, 1)
        for cache in (k_cache, v_cache)
    )
    scale = 1 / math.sqrt(max(1, dim)) if scale is None else scale
    scores = (q.to(wide)[:, :, None] @ keys.mT * scale).masked_fill(~held[:, None, None], -math.inf)
    p = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True).nan_to_num(neginf=0.0))
    return (p @ values)[:, :, 0].to(q.dtype)


def _inputs(sizes: Mapping[str, Any], dtype: str, device: str, seed: int) -> Inputs:
    """Lengths from 0 to all keys, the last one full; a page has one owner, and none past a length is valid."""
    draw = Draw(dtype, device, seed)
    batch, dim, page = sizes["q[0]"], sizes["dim"], sizes.get("page", 16)
    pages = triton.cdiv(sizes["n_kv"], page)
    low = sizes["n_kv"] if sizes.get("full") else 0
    lengths = draw.integers(low, sizes["n_kv"] + 1, batch, dtype=torch.int32)
    lengths[-1:] = sizes["n_kv"]
    table = torch.arange(batch * pages, device=device, dtype=torch.int32).flip(0).view(batch, pages)
    table = table.where(torch.arange(pages, device=device) * page < lengths[:, None], -1)
    caches = (draw.normal(batch * pages, page, sizes["kv_heads"], dim) for _ in "kv")
    return Inputs((draw.normal(batch, sizes["heads"], dim), *caches, table, lengths))


def _cost(sizes: Mapping[str, Any], dtype: str) -> Cost:
    """Of full sequences."""
    size = getattr(torch, dtype).itemsize * sizes["dim"]
    rows, keys = sizes["q[0]"] * sizes["heads"], sizes["q[0]"] * sizes["n_kv"]
    return Cost(size * (rows + 2 * keys * sizes["kv_heads"]), size * rows, 4 * rows * sizes["n_kv"] * sizes["dim"])


def _sizes(batch: int, n_kv: int, dim: int = 16, heads: int = 4, kv_heads: int = 2, **rest: Any) -> dict[str, Any]:
    return {"q[0]": batch, "n_kv": n_kv, "dim": dim, "heads": heads, "kv_heads": kv_heads} | rest


def _model(batch: int, n_kv: int) -> dict[str, Any]:
    """A step of a model with 32 heads that share 8 of keys, 128 dimensions; every sequence is full, as `_cost` says."""
    return _sizes(batch, n_kv, 128, 32, 8, full=True)


SPECS = (
    KernelSpec(
        name="paged_attention",
        function=paged_attention,
        reference=_plain,
        fallback=_plain,
        inputs=_inputs,
        buckets=BUCKETS,
        shapes={
            "few": (_model(1, 32768), _model(8, 4096)),
            "some": (_model(32, 4096),),
            "many": (_model(128, 2048),),
            "other": (_model(1024, 256),),
        },
        edges=(
            _sizes(3, 70),
            _sizes(2, 1),
            _sizes(2, 16, dim=64),
            _sizes(2, 33, dim=80, heads=3, kv_heads=3),
            _sizes(1, 31, heads=17, kv_heads=1),
            _sizes(2, 127, page=8),
            _sizes(1, 600, heads=2, kv_heads=1),  # split in three
            _sizes(2, 0),
            _sizes(0, 5),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        tolerance={"float32": 5e-6, "float16": 1e-3, "bfloat16": 8e-3},
        cost=_cost,
        triton_functions=(DECODE, attention_decode_join),
    ),
)
