"""A mixture of experts after top-k routing: sort tokens by expert, one product for all experts, sum the choices.

    routing = route(topk_ids, experts)            # which row each choice gets; rows of an expert padded to blocks
    rows = permute(x, routing)                    # (rows, d)
    rows = grouped_matmul(rows, w_up, routing)    # (rows, n): each block by its expert's weights
    out = combine(rows, topk_weights, routing)    # (tokens, n)

`moe_mlp` chains them. Nothing waits for the device: sizes follow from shapes alone, so that a CUDA graph can hold all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
from torch.nn.functional import pad, silu

from tprof_kernels.checks import FLOATS, check_device, check_dtype, check_shape, check_size
from tprof_kernels.moe_jit import EVEN_STEP, GRADIENT, MATMUL, moe_combine, moe_permute

LARGEST_BLOCK = 128


class Routing(NamedTuple):
    """Where the rows of a mixture of experts lie.

    Attributes:
        slot: (tokens, k) int32, the row of each choice; -1 where the choice is no expert of ours.
        source: (rows,) int32, the token of each row; -1 in padding.
        expert: (rows / block,) int32, the expert of each block of rows; -1 in blocks without one.
    """

    slot: torch.Tensor
    source: torch.Tensor
    expert: torch.Tensor


def block_rows(choices: int, experts: int) -> int:
    """Rows of a block: what an expert gets on average, as a power of two from 16 (tensor cores) to 128 (registers)."""
    return min(LARGEST_BLOCK, max(16, triton.next_power_of_2(triton.cdiv(choices, max(1, experts)))))


def most_blocks(choices: int, experts: int, block: int) -> int:
    """Blocks that suffice however the choices fall: every expert that has any leaves at most block - 1 rows empty."""
    return (choices + min(choices, experts) * (block - 1)) // block


def route(topk_ids: torch.Tensor, experts: int, block: int | None = None) -> Routing:
    """Rows for the choices, sorted by expert and within an expert by token; every expert begins a block.

    Torch operators alone: they run anywhere, and torch.compile fuses them.

    Args:
        topk_ids: (tokens, k) int32 or int64, the experts that each token chose. An id outside 0 .. experts - 1 (an
            expert of another rank) gets no row and adds nothing.
        experts: how many there are.
        block: rows of a block, a power of two from 16 to 128; `block_rows` if None.

    Raises:
        TypeError: ids are no integers.
        ValueError: ids are not two-dimensional, or the block is none of these.
    """
    check_dtype((torch.int32, torch.int64), topk_ids=topk_ids)
    if topk_ids.ndim != 2:
        raise ValueError(f"topk_ids has shape {tuple(topk_ids.shape)}, but must be (tokens, k)")
    choices, k = topk_ids.numel(), topk_ids.shape[1]
    block = block_rows(choices, experts) if block is None else block
    if block not in (16, 32, 64, LARGEST_BLOCK):
        raise ValueError(f"block is {block}, but must be 16, 32, 64 or {LARGEST_BLOCK}")
    blocks, device = most_blocks(choices, experts, block), topk_ids.device

    ids = topk_ids.flatten().long()
    ids = ids.where((ids >= 0) & (ids < experts), experts)
    ids, order = ids.sort(stable=True)
    first = torch.searchsorted(ids, torch.arange(experts + 1, device=device))  # of each expert's choices
    height = (first.diff() + block - 1) // block  # blocks of each expert
    end = height.cumsum(0)
    row = pad((end - height) * block, (0, 1))[ids] + torch.arange(choices, device=device) - first[ids]
    slot = torch.empty_like(row).scatter(0, order, row.where(ids < experts, -1))
    source = torch.full((blocks * block + 1,), -1, device=device)  # one row more, for what gets none
    source = source.scatter(0, row.where(ids < experts, blocks * block), order // max(1, k))[:-1]
    expert = torch.searchsorted(end, torch.arange(blocks, device=device), right=True)
    expert = expert.where(expert < experts, -1)
    return Routing(slot.view(topk_ids.shape).int(), source.int(), expert.int())


def permute(x: torch.Tensor, routing: Routing) -> torch.Tensor:
    """Each row's token, padding 0; differentiable in x.

    Args:
        x: (tokens, d); float32, float16 or bfloat16; any strides.
        routing: of these tokens.

    Returns:
        (rows, d), contiguous.

    Raises:
        TypeError: x has another dtype.
        ValueError: shapes do not fit, or a tensor is too large or not on one GPU.
    """
    return torch.ops.tprof_kernels.moe_permute(x, routing.source, routing.slot)


def grouped_matmul(x: torch.Tensor, weights: torch.Tensor, routing: Routing) -> torch.Tensor:
    """Each block of rows by its expert's weights, summed in float32; differentiable in x and weights.

    Args:
        x: (rows, k) as `permute` gives them; float32, float16 or bfloat16; any strides.
        weights: (experts, k, n), same dtype; any strides, so also the transposed view of (experts, n, k). All experts
            together may exceed 2^31 elements.
        routing: of these rows.

    Returns:
        (rows, n), contiguous; 0 in blocks without an expert. float32 products keep 21 bits of 24.

    Raises:
        TypeError: a dtype is none of these.
        ValueError: shapes do not fit, or a tensor is too large or not on one GPU.
    """
    return torch.ops.tprof_kernels.moe_matmul(x, weights, routing.expert)


def combine(rows: torch.Tensor, topk_weights: torch.Tensor, routing: Routing) -> torch.Tensor:
    """Each token's sum of its choices' rows times their weights, in float32; differentiable in rows and weights.

    Args:
        rows: (rows, d); float32, float16 or bfloat16; any strides.
        topk_weights: (tokens, k), of any of these dtypes.
        routing: of these rows.

    Returns:
        (tokens, d) in the rows' dtype, contiguous.

    Raises:
        TypeError: a dtype is none of these.
        ValueError: shapes do not fit, or a tensor is too large or not on one GPU.
    """
    return torch.ops.tprof_kernels.moe_combine(rows, topk_weights, routing.slot)


def moe_mlp(
    x: torch.Tensor,
    w_up: torch.Tensor,
    w_down: torch.Tensor,
    topk_ids: torch.Tensor,
    topk_weights: torch.Tensor,
) -> torch.Tensor:
    """The sum over a token's choices of weight * (silu(x gate) * (x up)) down; differentiable in all but the ids.

    Args:
        x: (tokens, d); float32, float16 or bfloat16; any strides.
        w_up: (experts, d, 2 * hidden), same dtype: the columns of the gate, then those of up.
        w_down: (experts, hidden, d), same dtype.
        topk_ids: (tokens, k) int32 or int64; an id of no expert adds nothing.
        topk_weights: (tokens, k), of any of these dtypes.

    Returns:
        (tokens, d) in x's dtype, contiguous.

    Raises:
        TypeError: a dtype is none of these.
        ValueError: shapes do not fit, or a tensor is too large or not on one GPU.
    """
    routing = route(topk_ids, w_up.shape[0])
    gate, up = grouped_matmul(permute(x, routing), w_up, routing).chunk(2, -1)
    return combine(grouped_matmul(silu(gate) * up, w_down, routing), topk_weights, routing)


# ---- the operators


@torch.library.custom_op("tprof_kernels::moe_permute", mutates_args=())
def _permute(x: torch.Tensor, source: torch.Tensor, slot: torch.Tensor) -> torch.Tensor:
    check_dtype(FLOATS, x=x)
    check_device(x=x, source=source, slot=slot)
    check_shape("x", x, (slot.shape[0], x.shape[-1]))
    out = torch.empty((source.numel(), x.shape[1]), dtype=x.dtype, device=x.device)
    check_size(x=x, out=out)
    if out.numel():
        moe_permute[(out.shape[0],)](out, x, source, out.shape[1], *x.stride(), **_wide(out))
    return out


@torch.library.custom_op("tprof_kernels::moe_combine", mutates_args=())
def _combine(rows: torch.Tensor, weights: torch.Tensor, slot: torch.Tensor) -> torch.Tensor:
    check_dtype(FLOATS, rows=rows, topk_weights=weights)
    check_device(rows=rows, topk_weights=weights, slot=slot)
    check_shape("rows", rows, (rows.shape[0], rows.shape[-1]))
    check_shape("topk_weights", weights, tuple(slot.shape))
    out = torch.empty((slot.shape[0], rows.shape[1]), dtype=rows.dtype, device=rows.device)
    check_size(rows=rows, topk_weights=weights, out=out)
    if out.numel():
        moe_combine[(out.shape[0],)](
            out, rows, weights, slot, out.shape[1], *rows.stride(), *weights.stride(), TOPK=slot.shape[1], **_wide(out)
        )
    return out


@torch.library.custom_op("tprof_kernels::moe_matmul", mutates_args=())
def _matmul(x: torch.Tensor, weights: torch.Tensor, expert: torch.Tensor) -> torch.Tensor:
    check_dtype(FLOATS, x=x)
    check_dtype((x.dtype,), weights=weights)
    check_device(x=x, weights=weights, expert=expert)
    if x.ndim != 2 or weights.ndim != 3 or x.shape[0] % max(1, expert.numel()):
        raise ValueError(
            f"x must be (rows, k) with {expert.numel()} blocks of rows and weights (experts, k, n), "
            f"but they are {tuple(x.shape)} and {tuple(weights.shape)}"
        )
    (rows, k), n = x.shape, weights.shape[2]
    check_shape("weights", weights, (weights.shape[0], k, n))
    out = torch.empty((rows, n), dtype=x.dtype, device=x.device)
    check_size(x=x, weights=weights[:1], out=out)
    if out.numel():
        block = rows // expert.numel()
        MATMUL.launch(
            lambda meta: (expert.numel() * triton.cdiv(n, meta["BLOCK_N"]),), {"rows": rows},
            out, x, weights, expert, rows, n, k, *x.stride(), *weights.stride(),
            BLOCK_M=block, EVEN_K=k * x.element_size() % EVEN_STEP == 0,
        )  # fmt: skip
    return out


@torch.library.custom_op("tprof_kernels::moe_matmul_backward", mutates_args=())
def _weight_gradient(x: torch.Tensor, dy: torch.Tensor, expert: torch.Tensor, experts: int) -> torch.Tensor:
    (rows, k), n = x.shape, dy.shape[1]
    dw = torch.empty((experts, k, n), dtype=x.dtype, device=x.device)
    check_size(dw=dw[:1], dy=dy)
    owner = expert.where(expert >= 0, experts)
    edges = torch.searchsorted(owner, torch.arange(experts + 1, device=x.device, dtype=owner.dtype), out_int32=True)
    if dw.numel():
        GRADIENT.launch(
            lambda meta: (experts * triton.cdiv(k, meta["BLOCK_K"]) * triton.cdiv(n, meta["BLOCK_N"]),), {"rows": rows},
            dw, x, dy, edges, rows, n, k, *x.stride(), *dy.stride(), BLOCK_M=max(16, rows // max(1, expert.numel())),
        )  # fmt: skip
    return dw


def _wide(out: torch.Tensor) -> dict[str, int]:
    """Columns that a program moves at a time: 16 bytes for each of 128 threads, twice."""
    return {"BLOCK_D": min(2048, triton.next_power_of_2(out.shape[1]))}


@_permute.register_fake
def _(x: torch.Tensor, source: torch.Tensor, slot: torch.Tensor) -> torch.Tensor:
    return x.new_empty((source.shape[0], x.shape[1]))


@_combine.register_fake
def _(rows: torch.Tensor, weights: torch.Tensor, slot: torch.Tensor) -> torch.Tensor:
    return rows.new_empty((slot.shape[0], rows.shape[1]))


@_matmul.register_fake
def _(x: torch.Tensor, weights: torch.Tensor, expert: torch.Tensor) -> torch.Tensor:
    return x.new_empty((x.shape[0], weights.shape[2]))


@_weight_gradient.register_fake
def _(x: torch.Tensor, dy: torch.Tensor, expert: torch.Tensor, experts: int) -> torch.Tensor:
    return x.new_empty((experts, x.shape[1], dy.shape[1]))


def _save(ctx: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(*inputs)


def _permute_backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    """A token's gradient is the sum of its rows': what `combine` does with weights of 1."""
    _, _, slot = ctx.saved_tensors
    return torch.ops.tprof_kernels.moe_combine(dy, dy.new_ones(slot.shape), slot), None, None


def _combine_backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    rows, weights, slot = ctx.saved_tensors
    spare = rows.shape[0]  # one row more, for choices that have none
    at = slot.where(slot >= 0, spare).long()
    share = (weights[..., None] * dy[:, None]).to(rows.dtype).flatten(0, 1)
    drows = torch.zeros((spare + 1, rows.shape[1]), dtype=rows.dtype, device=rows.device)
    drows = drows.index_copy(0, at.flatten(), share)[:-1]
    along = (rows[slot.clamp(min=0).long()].float() * dy[:, None].float()).sum(-1)
    return drows, along.where(slot >= 0, 0.0).to(weights.dtype), None


def _matmul_backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
    x, weights, expert = ctx.saved_tensors
    dx = torch.ops.tprof_kernels.moe_matmul(dy, weights.mT, expert) if ctx.needs_input_grad[0] else None
    wanted = ctx.needs_input_grad[1]
    dw = torch.ops.tprof_kernels.moe_matmul_backward(x, dy, expert, weights.shape[0]) if wanted else None
    return dx, dw, None


_permute.register_autograd(_permute_backward, setup_context=_save)
_combine.register_autograd(_combine_backward, setup_context=_save)
_matmul.register_autograd(_matmul_backward, setup_context=_save)
