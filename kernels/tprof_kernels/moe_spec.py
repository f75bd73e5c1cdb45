"""What the functions of `moe` promise: references in torch, inputs, sizes and costs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import silu

from tprof.kernelspec import Cost, Inputs, KernelSpec
from tprof_kernels.draw import Draw
from tprof_kernels.moe import Routing, block_rows, combine, grouped_matmul, moe_mlp, most_blocks, permute, route
from tprof_kernels.moe_jit import BUCKETS, GRADIENT, MATMUL, moe_combine, moe_permute

if TYPE_CHECKING:
    from collections.abc import Mapping


def _permute(x: torch.Tensor, routing: Routing) -> torch.Tensor:
    padding = (routing.source < 0)[:, None]
    return x[routing.source.clamp(min=0)].masked_fill(padding, 0) if x.numel() else x[:0]


def _grouped_matmul(x: torch.Tensor, weights: torch.Tensor, routing: Routing) -> torch.Tensor:
    wide = torch.promote_types(x.dtype, torch.float32)
    expert = routing.expert.repeat_interleave(x.shape[0] // max(1, routing.expert.numel()))
    out = torch.zeros((x.shape[0], weights.shape[2]), dtype=wide, device=x.device)
    for e in range(weights.shape[0]):
        mine = (expert == e).nonzero()[:, 0]
        out = out.index_add(0, mine, x[mine].to(wide) @ weights[e].to(wide))
    return out.to(x.dtype)


def _combine(rows: torch.Tensor, topk_weights: torch.Tensor, routing: Routing) -> torch.Tensor:
    wide = torch.promote_types(rows.dtype, torch.float32)
    foreign = routing.slot < 0  # masked, not only weighted by 0: that times a NaN of row 0 is a NaN
    chosen = rows.to(wide)[routing.slot.clamp(min=0)].masked_fill(foreign[..., None], 0)
    weights = topk_weights.to(wide).masked_fill(foreign, 0)
    return (chosen * weights[..., None]).sum(1).to(rows.dtype)


def _moe_mlp(x: Any, w_up: Any, w_down: Any, topk_ids: Any, topk_weights: Any) -> torch.Tensor:
    wide = torch.promote_types(x.dtype, torch.float32)
    out = torch.zeros(x.shape, dtype=wide, device=x.device)
    for e in range(w_up.shape[0]):
        token, choice = (topk_ids == e).nonzero(as_tuple=True)
        gate, up = (x[token].to(wide) @ w_up[e].to(wide)).chunk(2, -1)
        down = (silu(gate) * up) @ w_down[e].to(wide)
        out = out.index_add(0, token, down * topk_weights[token, choice, None].to(wide))
    return out.to(x.dtype)


def _drawn(sizes: Mapping[str, Any], draw: Draw) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and weights of the choices; with `foreign`, some ids are no expert's."""
    extra = 1 if sizes.get("foreign") else 0
    ids = draw.integers(-extra, sizes["experts"] + extra, sizes["tokens"], sizes["topk"])
    return ids, draw.normal(sizes["tokens"], sizes["topk"], dtype=torch.float32).softmax(-1)


def _permute_inputs(sizes: Mapping[str, Any], dtype: str, device: str, seed: int) -> Inputs:
    draw = Draw(dtype, device, seed)
    ids, _ = _drawn(sizes, draw)
    return Inputs((draw.normal(sizes["tokens"], sizes["d"]), route(ids, sizes["experts"])))


def _matmul_inputs(sizes: Mapping[str, Any], dtype: str, device: str, seed: int) -> Inputs:
    draw = Draw(dtype, device, seed)
    ids, _ = _drawn(sizes, draw)
    routing = route(ids, sizes["experts"])
    weights = draw.normal(sizes["experts"], sizes["d"], sizes["n"])
    return Inputs((draw.normal(routing.source.numel(), sizes["d"]), weights, routing))


def _combine_inputs(sizes: Mapping[str, Any], dtype: str, device: str, seed: int) -> Inputs:
    draw = Draw(dtype, device, seed)
    ids, weights = _drawn(sizes, draw)
    routing = route(ids, sizes["experts"])
    return Inputs((draw.normal(routing.source.numel(), sizes["d"]), weights, routing))


def _mlp_inputs(sizes: Mapping[str, Any], dtype: str, device: str, seed: int) -> Inputs:
    draw = Draw(dtype, device, seed)
    ids, weights = _drawn(sizes, draw)
    experts, d, n = sizes["experts"], sizes["d"], sizes["n"]
    up, down = draw.normal(experts, d, n, scale=d**-0.5), draw.normal(experts, n // 2, d, scale=n**-0.5)
    return Inputs((draw.normal(sizes["tokens"], d), up, down, ids, weights))


def _permute_cost(sizes: Mapping[str, Any], dtype: str) -> Cost:
    row = sizes["d"] * getattr(torch, dtype).itemsize
    return Cost(row * sizes["tokens"], row * sizes["rows"], 0)


def _combine_cost(sizes: Mapping[str, Any], dtype: str) -> Cost:
    row = sizes["d"] * getattr(torch, dtype).itemsize
    choices = sizes["tokens"] * sizes["topk"]
    return Cost(row * choices, row * sizes["tokens"], 2 * choices * sizes["d"])


def _matmul_cost(sizes: Mapping[str, Any], dtype: str) -> Cost:
    """Padding is neither read nor multiplied, and an expert without a choice not read."""
    size, choices = getattr(torch, dtype).itemsize, sizes["tokens"] * sizes["topk"]
    d, n, experts = sizes["d"], sizes["n"], min(sizes["experts"], choices)
    return Cost(size * (choices * d + experts * d * n), size * sizes["rows"] * n, 2 * choices * d * n)


def _mlp_cost(sizes: Mapping[str, Any], dtype: str) -> Cost:
    size, choices = getattr(torch, dtype).itemsize, sizes["tokens"] * sizes["topk"]
    d, n, experts = sizes["d"], sizes["n"], min(sizes["experts"], choices)
    weights = experts * d * (n + n // 2)
    return Cost(size * (sizes["tokens"] * d + weights), size * sizes["tokens"] * d, 2 * choices * d * (n + n // 2))


def _sizes(tokens: int, experts: int = 3, topk: int = 2, d: int = 40, n: int = 24, **rest: Any) -> dict[str, Any]:
    """Of a call; `rows` follows from the others, and is what the buckets go by."""
    block = block_rows(tokens * topk, experts)
    rows = block * most_blocks(tokens * topk, experts, block)
    return {"tokens": tokens, "experts": experts, "topk": topk, "d": d, "n": n, "rows": rows} | rest


def _model(tokens: int) -> dict[str, Any]:
    """A layer of a model with 64 small experts, eight for each token (OLMoE-1B-7B)."""
    return _sizes(tokens, 64, 8, 2048, 2 * 1024)


SHAPES = {
    "decode": (_model(32), _model(256)),
    "prefill": (_model(4096), _sizes(4096, 8, 2, 4096, 2 * 14336)),  # the second: few large experts, Mixtral 8x7B's
    "other": (_sizes(70_000, 8, 2, 512, 512),),
}
EDGES = (
    _sizes(37),
    _sizes(1, topk=1),
    _sizes(65, 2, 1, 64, 130),  # a block and a row; K in whole steps
    _sizes(5, 20, 3),  # more experts than choices
    _sizes(33, foreign=True),
    _sizes(0),
)
COMMON: dict[str, Any] = {
    "buckets": BUCKETS,
    "shapes": SHAPES,
    "edges": EDGES,
    "dtypes": ("float32", "float16", "bfloat16"),
}
EXACT = {"float32": 5e-6, "float16": 1e-3, "bfloat16": 8e-3}

SPECS = (
    KernelSpec(
        name="moe_permute",
        function=permute,
        reference=_permute,
        fallback=_permute,
        inputs=_permute_inputs,
        tolerance=dict.fromkeys(EXACT, 0.0),  # a copy
        cost=_permute_cost,
        triton_functions=(moe_permute,),
        gradients=("x",),
        **COMMON,
    ),
    KernelSpec(
        name="moe_matmul",
        function=grouped_matmul,
        reference=_grouped_matmul,
        fallback=_grouped_matmul,
        inputs=_matmul_inputs,
        tolerance=EXACT,
        cost=_matmul_cost,
        triton_functions=(MATMUL, GRADIENT),
        gradients=("x", "weights"),
        **COMMON,
    ),
    KernelSpec(
        name="moe_combine",
        function=combine,
        reference=_combine,
        fallback=_combine,
        inputs=_combine_inputs,
        tolerance=EXACT,
        cost=_combine_cost,
        triton_functions=(moe_combine,),
        gradients=("rows", "topk_weights"),
        **COMMON,
    ),
    KernelSpec(
        name="moe_mlp",
        function=moe_mlp,
        reference=_moe_mlp,
        fallback=_moe_mlp,
        inputs=_mlp_inputs,
        tolerance={name: 2 * value for name, value in EXACT.items()},  # two products and an activation in between
        cost=_mlp_cost,
        triton_functions=(moe_permute, MATMUL, moe_combine, GRADIENT),
        gradients=("x", "w_up", "w_down", "topk_weights"),
        **COMMON,
    ),
)
