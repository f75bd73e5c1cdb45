"""Attention, forward and backward: causal, sliding window, heads that share keys."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
import triton
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from tprof.kernelspec import Cost, Inputs, KernelSpec
from tprof_kernels.attention_backward import DKDV, DQ
from tprof_kernels.attention_forward import BUCKETS, FORWARD
from tprof_kernels.attention_tiles import check_heads
from tprof_kernels.checks import FLOATS, check_device, check_dtype, check_shape, check_size
from tprof_kernels.draw import Draw

if TYPE_CHECKING:
    from collections.abc import Mapping


def attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
) -> torch.Tensor:
    """softmax(scale * q k') v, with sums in float32; differentiable in q, k and v.

    Queries stand at the end of the keys, as flash-attn aligns them: query i stands at p = i + n_kv - n_q. (`is_causal`
    of torch's scaled_dot_product_attention aligns to the start.) A query that sees no key gives 0.

    Args:
        q: (batch, heads, n_q, dim); float32, float16 or bfloat16; any strides. dim is at most 128; other sizes than 16,
            32, 64 and 128 are computed in the next larger one's time.
        k: (batch, kv_heads, n_kv, dim), same dtype; heads is a multiple of kv_heads, and head h reads key head
            h // (heads / kv_heads).
        v: as k.
        causal: query i sees the keys up to p.
        window: query i sees only keys nearer to p than this: itself and the window - 1 before it, and without `causal`
            as many after it.
        scale: factor of the scores, above 0; 1 / sqrt(dim) if None.

    Returns:
        (batch, heads, n_q, dim) in q's dtype, contiguous. float32 products are exact, not TF32.

    Raises:
        TypeError: a dtype is none of these, or not all are the same.
        ValueError: shapes do not fit, dim is above 128, scale or window is not above 0, or a tensor is too large or
            not on one GPU.
    """
    scale = 1 / math.sqrt(max(1, q.shape[-1])) if scale is None else scale
    if window is not None and window < 1:
        raise ValueError(f"window is {window}, but a query sees at least itself; leave it out for no bound")
    out, _ = torch.ops.tprof_kernels.attention(q, k, v, window or 0, 1 if causal else window or 0, scale)
    return out


@torch.library.custom_op("tprof_kernels::attention", mutates_args=())
def _forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, left: int, right: int, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    _check(q, k, v, scale)
    out = torch.empty(q.shape, dtype=q.dtype, device=q.device)
    check_size(out=out)  # an expanded q spans less
    lse = torch.empty(q.shape[:3], dtype=torch.float32, device=q.device)
    if out.numel():
        n_q, n_kv = q.shape[2], k.shape[2]
        FORWARD.launch(
            lambda meta: (triton.cdiv(n_q, meta["BLOCK_M"]) * lse[..., 0].numel(),),
            {"n_q": n_q, "n_kv": n_kv},
            out, lse, *_arguments(q, k, v, left, right, scale), **_constants(q, left, right),
        )  # fmt: skip
    return out, lse


@torch.library.custom_op("tprof_kernels::attention_backward", mutates_args=())
def _backward_op(
    do: torch.Tensor, out: torch.Tensor, lse: torch.Tensor,
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, left: int, right: int, scale: float,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:  # fmt: skip
    dq, dk, dv = (torch.empty(x.shape, dtype=x.dtype, device=x.device) for x in (q, k, v))
    check_size(dk=dk)
    delta = torch.empty_like(lse)
    do = do.contiguous()
    n_q, n_kv = q.shape[2], k.shape[2]
    values = {"n_q": n_q, "n_kv": n_kv}
    arguments, constants = _arguments(q, k, v, left, right, scale), _constants(q, left, right)
    if dq.numel():
        DQ.launch(
            lambda meta: (triton.cdiv(n_q, meta["BLOCK_M"]) * lse[..., 0].numel(),),
            values, dq, delta, do, out, lse, *arguments, **constants,
        )  # fmt: skip
    if dk.numel():
        DKDV.launch(
            lambda meta: (triton.cdiv(n_kv, meta["BLOCK_N"]) * k.shape[0] * k.shape[1],),
            values, dk, dv, delta, do, lse, *arguments, **constants,
        )  # fmt: skip
    return dq, dk, dv


def _arguments(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, left: int, right: int, scale: float
) -> tuple[Any, ...]:
    """What all three kernels take, in their order."""
    heads = q.shape[1]
    sizes = (q.shape[2], k.shape[2], heads, heads // max(1, k.shape[1]))
    return (q, k, v, *sizes, left, right, scale, *q.stride(), *k.stride(), *v.stride())


def _constants(q: torch.Tensor, left: int, right: int) -> dict[str, Any]:
    dim = q.shape[-1]
    padded = max(16, triton.next_power_of_2(dim))  # tensor cores take no less
    return {"LEFT": left > 0, "RIGHT": right > 0, "DIM": dim, "BLOCK_D": padded}


def _check(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> None:
    check_dtype(FLOATS, q=q)
    check_dtype((q.dtype,), k=k, v=v)
    check_device(q=q, k=k, v=v)
    check_size(q=q, k=k, v=v)
    if q.ndim != 4 or k.ndim != 4:
        raise ValueError(
            f"q, k and v must be (batch, heads, n, dim), but q has shape {tuple(q.shape)} and k {tuple(k.shape)}"
        )
    batch, heads, _, dim = q.shape
    check_shape("k", k, (batch, k.shape[1], k.shape[2], dim))
    check_shape("v", v, tuple(k.shape))
    check_heads(heads, k.shape[1], dim)
    if not scale > 0:
        raise ValueError(f"scale is {scale}, but must be above 0; negate q for a negative one")


@_forward.register_fake
def _(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, left: int, right: int, scale: float) -> Any:
    return q.new_empty(q.shape), q.new_empty(q.shape[:3], dtype=torch.float32)


@_backward_op.register_fake
def _(do: Any, out: Any, lse: Any, q: Any, k: Any, v: Any, left: int, right: int, scale: float) -> Any:
    return q.new_empty(q.shape), k.new_empty(k.shape), v.new_empty(v.shape)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    ctx.save_for_backward(*output, *inputs[:3])
    ctx.settings = inputs[3:]


def _backward(ctx: Any, do: torch.Tensor, _: torch.Tensor) -> tuple[Any, ...]:
    grads = torch.ops.tprof_kernels.attention_backward(do, *ctx.saved_tensors, *ctx.settings)
    return (*grads, None, None, None)


_forward.register_autograd(_backward, setup_context=_setup)


# ---- what it promises


def _plain(
    q: Any, k: Any, v: Any, *, causal: bool = False, window: int | None = None, scale: float | None = None
) -> torch.Tensor:
    """Reference and fallback: all scores at once, in float32 or, of float64, in float64."""
    wide = torch.promote_types(q.dtype, torch.float32)
    group = q.shape[1] // max(1, k.shape[1])
    keys, values = (x.to(wide).repeat_interleave(group, 1) for x in (k, v))
    scale = 1 / math.sqrt(max(1, q.shape[-1])) if scale is None else scale
    scores = (q.to(wide) @ keys.mT * scale).masked_fill(~_visible(q, k, causal, window), -math.inf)
    p = torch.exp(scores - torch.logsumexp(scores, -1, keepdim=True).nan_to_num(neginf=0.0))
    return (p @ values).to(q.dtype)


def _visible(q: torch.Tensor, k: torch.Tensor, causal: bool, window: int | None) -> torch.Tensor:  # noqa: FBT001 - as the public argument
    n_q, n_kv = q.shape[2], k.shape[2]
    position = torch.arange(n_q, device=q.device)[:, None] + n_kv - n_q
    key = torch.arange(n_kv, device=q.device)[None, :]
    seen = key <= position if causal else key < n_kv + 0 * position
    return seen if window is None else seen & ((key - position).abs() < window)


def _library(
    q: Any, k: Any, v: Any, *, causal: bool = False, window: int | None = None, scale: float | None = None
) -> torch.Tensor:
    """The fastest of torch's that serves: cuDNN's or flash-attn, without a mask wherever the alignment allows."""
    plain = window is None and (not causal or q.shape[2] == k.shape[2])
    mask = None if plain else _visible(q, k, causal, window)
    shared = {"enable_gqa": True} if q.shape[1] != k.shape[1] else {}
    backends = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    with sdpa_kernel(backends, set_priority=True):
        return scaled_dot_product_attention(q, k, v, mask, is_causal=causal and plain, scale=scale, **shared)


def _inputs(sizes: Mapping[str, Any], dtype: str, device: str, seed: int) -> Inputs:
    draw = Draw(dtype, device, seed)
    batch, heads, kv_heads, dim = (sizes.get(name, 2) for name in ("batch", "heads", "kv_heads", "dim"))
    q = draw.normal(batch, heads, sizes["n_q"], dim)
    k, v = (draw.normal(batch, kv_heads, sizes["n_kv"], dim) for _ in "kv")
    return Inputs((q, k, v), {"causal": sizes.get("causal", False), "window": sizes.get("window")})


def _cost(sizes: Mapping[str, Any], dtype: str) -> Cost:
    """Operations count the scores that the mask leaves: two products of dim multiply-adds each."""
    n_q, n_kv, window, rows = sizes["n_q"], sizes["n_kv"], sizes.get("window"), sizes["batch"] * sizes["heads"]
    low, high = window or n_q + n_kv, 1 if sizes.get("causal") else window or n_q + n_kv
    positions = range(n_kv - n_q, n_kv)
    seen = sum(max(0, min(n_kv, p + high) - max(0, p - low + 1)) for p in positions)
    size = getattr(torch, dtype).itemsize * sizes["dim"]
    keys = sizes["batch"] * sizes["kv_heads"] * n_kv
    return Cost(size * (rows * n_q + 2 * keys), size * rows * n_q, 4 * rows * seen * sizes["dim"])


def _model(n_q: int, n_kv: int, **rest: Any) -> dict[str, Any]:
    """Sizes of a model's layer: 32 heads that share 8 of keys, 128 dimensions, causal; 16,384 tokens of queries."""
    sizes = {"batch": max(1, 16384 // n_q), "heads": 32, "kv_heads": 8, "dim": 128, "causal": True}
    return sizes | {"n_q": n_q, "n_kv": n_kv} | rest


def _edge(n_q: int, n_kv: int, dim: int = 16, **rest: Any) -> dict[str, Any]:
    return {"batch": 2, "heads": 2, "kv_heads": 2, "dim": dim} | {"n_q": n_q, "n_kv": n_kv} | rest


SPECS = (
    KernelSpec(
        name="attention",
        function=attention,
        reference=_plain,
        fallback=_plain,
        library=_library,
        inputs=_inputs,
        buckets=BUCKETS,
        shapes={
            "short": (_model(512, 512), _model(1024, 1024, heads=16, kv_heads=16, dim=64, causal=False)),
            "medium": (_model(4096, 4096), _model(4096, 4096, heads=16, kv_heads=16, dim=64), _model(2048, 8192)),
            "long": (_model(16384, 16384), _model(16384, 16384, window=4096), _model(16384, 16384, dim=96)),
            "other": (_model(16, 4096, batch=16),),
        },
        edges=(
            _edge(33, 47, causal=True, heads=4),  # a block and a row; queries at the end of the keys
            _edge(64, 64, dim=64, causal=True),
            _edge(65, 31, causal=True),  # rows that see no key
            _edge(63, 65, dim=80),
            _edge(37, 70, window=7, heads=3, kv_heads=1),
            _edge(70, 41, window=2, causal=True),
            _edge(67, 67, window=34, causal=True, dim=24),
            _edge(1, 32, causal=True, heads=4),
            _edge(32, 2),
            _edge(3, 0),
            _edge(0, 3),
            _edge(2, 2, batch=0),
        ),
        dtypes=("float32", "float16", "bfloat16"),
        tolerance={"float32": 5e-6, "float16": 1e-3, "bfloat16": 8e-3},
        cost=_cost,
        triton_functions=(FORWARD, DQ, DKDV),
        gradients=("q", "k", "v"),
    ),
)
