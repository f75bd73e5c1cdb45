"""LayerNorm and RMSNorm over the last dimension, forward and backward, with the residual of pre-norm models."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import triton

from tprof.kernelspec import Cost, Inputs, KernelSpec
from tprof_kernels import norm_jit as jit
from tprof_kernels.checks import FLOATS, check_device, check_dtype, check_shape, check_size
from tprof_kernels.draw import Draw
from tprof_kernels.rows import as_rows
from tprof_kernels.tiles import programs, row_grid, steps

if TYPE_CHECKING:
    from collections.abc import Mapping

Normed = torch.Tensor | tuple[torch.Tensor, torch.Tensor]


def layer_norm(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
    residual: torch.Tensor | None = None,
) -> Normed:
    """LayerNorm: (h - mean(h)) / sqrt(var(h) + eps) * weight + bias over the last dimension, where h = x + residual.

    Ba, Kiros and Hinton, arXiv:1607.06450. Statistics are float32; the variance is that of the population, taken from
    distances to the mean. A row of at most 16,384 columns is read once, a longer one twice.

    Args:
        x: (..., N); float32, float16 or bfloat16. Read in place where one step reaches every row, else copied once.
        weight: (N,), of any of these dtypes.
        bias: as weight; None adds nothing.
        eps: added to the variance.
        residual: of x's shape and dtype; added before, and h, rounded to x's dtype, is returned too.

    Returns:
        A contiguous tensor of x's shape and dtype; with a residual, that and h. Differentiable by every tensor; the
        backward adds in a fixed order, so it gives the same bits each time on one kind of device.

    Raises:
        TypeError: a tensor has another dtype.
        ValueError: a tensor has another shape, is not on x's GPU, or spans more than 2^31 - 1 elements.
    """
    return _normed(x, weight, bias, residual, eps, center=True)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6, residual: torch.Tensor | None = None) -> Normed:
    """RMSNorm: h / sqrt(mean(h * h) + eps) * weight over the last dimension, where h = x + residual.

    Zhang and Sennrich, arXiv:1910.07467. Arguments, results and errors are those of `layer_norm`.
    """
    return _normed(x, weight, None, residual, eps, center=False)


def _normed(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    residual: torch.Tensor | None,
    eps: float,
    *,
    center: bool,
) -> Normed:
    y, stream, _, _ = torch.ops.tprof_kernels.norm(x, weight, bias, residual, eps, center)
    return y if residual is None else (y, stream)


@torch.library.custom_op("tprof_kernels::norm", mutates_args=())
def _norm(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    residual: torch.Tensor | None,
    eps: float,
    center: bool,  # noqa: FBT001 - operators have no keyword-only flags
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The output, the sum with the residual (or nothing), mean (or nothing) and 1 / sqrt(var + eps) of each row."""
    _check(x, weight, bias, residual)
    rows = as_rows(x, -1)
    m, n = rows.shape
    y, stream, mean, rstd = outputs = _outputs(x, residual, center)
    if not x.numel():
        return outputs
    added = None if residual is None else as_rows(residual, -1)
    pointers = (y, None if added is None else stream, mean if center else None, rstd, rows, added)
    pointers += (weight.contiguous(), None if bias is None else bias.contiguous())
    strides = (*rows.stride(), *steps(added))
    if n > jit.ONE_BLOCK:
        jit.LONG.launch((m,), {"M": m, "N": n}, *pointers, n, *strides, eps, CENTER=center)
    else:
        block = triton.next_power_of_2(n)
        jit.ROWS.launch(
            row_grid(m, block), {"M": m, "N": n}, *pointers, m, n, *strides, eps, CENTER=center, BLOCK_N=block
        )
    return outputs


@torch.library.custom_op("tprof_kernels::norm_backward", mutates_args=())
def _norm_backward(
    dy: torch.Tensor,
    dstream: torch.Tensor | None,
    x: torch.Tensor,
    weight: torch.Tensor,
    mean: torch.Tensor,
    rstd: torch.Tensor,
    center: bool,  # noqa: FBT001
    biased: bool,  # noqa: FBT001
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients by x (and the residual, which has the same), and in float32 by weight and, where there is one, bias."""
    check_size(dy=dy, dstream=dstream)
    rows, grads = as_rows(x, -1), as_rows(dy, -1)
    onward = None if dstream is None else as_rows(dstream, -1)
    m, n = rows.shape
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if not x.numel():
        return dx, weight.new_zeros((1 + biased, n), dtype=torch.float32)
    # one row of partial sums per program, so that no two write one address and the order of additions is fixed
    sums = torch.empty((1 + biased, programs(x.device, m), n), dtype=torch.float32, device=x.device)
    dweight, dbias = sums[0], sums[1] if biased else None
    given = (rows, weight.contiguous(), mean if center else None, rstd, grads)
    _launch_backward(dx, dweight, dbias, given, onward, center=center)
    return dx, sums.sum(1)


def _launch_backward(
    dx: torch.Tensor,
    dweight: torch.Tensor,
    dbias: torch.Tensor | None,
    given: tuple[torch.Tensor | None, ...],
    dstream: torch.Tensor | None,
    *,
    center: bool,
) -> None:
    rows, _, mean, rstd, grads = given
    m, n = rows.shape
    count = len(dweight)
    sizes, strides = {"M": m, "N": n}, (*rows.stride(), *grads.stride())
    if n <= jit.ONE_BLOCK_BACKWARD:
        jit.ROWS_BACKWARD.launch(
            (count,), sizes, dx, dweight, dbias, *given, dstream, m, n, *strides, *steps(dstream),
            CENTER=center, BLOCK_N=triton.next_power_of_2(n),
        )  # fmt: skip
        return
    jit.LONG_BACKWARD.launch((m,), sizes, dx, *given, dstream, n, *strides, *steps(dstream), CENTER=center)
    jit.COLUMNS_BACKWARD.launch(
        lambda meta: (triton.cdiv(n, meta["BLOCK"]), count),
        sizes, dweight, dbias, rows, mean, rstd, grads, m, n, *strides, CENTER=center,
    )  # fmt: skip


def _check(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None) -> None:
    check_dtype(FLOATS, x=x, weight=weight, bias=bias)
    check_device(x=x, weight=weight, bias=bias, residual=residual)
    check_size(x=x, residual=residual)
    check_shape("weight", weight, tuple(x.shape[-1:]))
    if bias is not None:
        check_shape("bias", bias, tuple(x.shape[-1:]))
    if residual is not None:
        check_dtype((x.dtype,), residual=residual)
        check_shape("residual", residual, tuple(x.shape))


def _outputs(
    x: torch.Tensor,
    residual: torch.Tensor | None,
    center: bool,  # noqa: FBT001
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Room for what the operator returns; what there is none of has no elements."""
    count = math.prod(x.shape[:-1])
    return (
        torch.empty(x.shape, dtype=x.dtype, device=x.device),
        torch.empty(0 if residual is None else x.shape, dtype=x.dtype, device=x.device),
        torch.empty(count if center else 0, dtype=torch.float32, device=x.device),
        torch.empty(count, dtype=torch.float32, device=x.device),
    )


@_norm.register_fake
def _(x, weight, bias, residual, eps, center):
    return _outputs(x, residual, center)


@_norm_backward.register_fake
def _(dy, dstream, x, weight, mean, rstd, center, biased):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device), rstd.new_empty((1 + biased, x.shape[-1]))


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
    x, weight, bias, residual, _, ctx.center = inputs
    _, stream, mean, rstd = output
    ctx.set_materialize_grads(False)  # a sum that nobody used must cost the backward no read of zeros
    ctx.dtypes = weight.dtype, None if bias is None else bias.dtype
    ctx.residual = residual is not None
    ctx.save_for_backward(stream if ctx.residual else x, weight, mean, rstd)


def _backward(ctx: Any, dy: torch.Tensor | None, dstream: torch.Tensor | None, *_: None) -> tuple[Any, ...]:
    x, weight, mean, rstd = ctx.saved_tensors
    of_weight, of_bias = ctx.dtypes
    dx, sums = torch.ops.tprof_kernels.norm_backward(
        torch.zeros_like(x) if dy is None else dy,
        dstream if ctx.residual else None,
        x, weight, mean, rstd, ctx.center, of_bias is not None,
    )  # fmt: skip
    dbias = None if of_bias is None else sums[1].to(of_bias)
    return dx, sums[0].to(of_weight), dbias, dx if ctx.residual else None, None, None


_norm.register_autograd(_backward, setup_context=_setup)


# ---- what it promises


def _plain(
    h: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, eps: float, *, center: bool
) -> torch.Tensor:
    wide = h.to(torch.promote_types(h.dtype, torch.float32))
    wide = wide - wide.mean(-1, keepdim=True) if center else wide
    y = wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt() * weight
    return (y if bias is None else y + bias).to(h.dtype)


def _layer_norm(x: Any, weight: Any, bias: Any = None, eps: float = 1e-5, residual: Any = None) -> Normed:
    h = x if residual is None else x + residual
    y = _plain(h, weight, bias, eps, center=True)
    return y if residual is None else (y, h)


def _rms_norm(x: Any, weight: Any, eps: float = 1e-6, residual: Any = None) -> Normed:
    h = x if residual is None else x + residual
    y = _plain(h, weight, None, eps, center=False)
    return y if residual is None else (y, h)


def _torch_layer_norm(x: Any, weight: Any, bias: Any = None, eps: float = 1e-5, residual: Any = None) -> Normed:
    h = x if residual is None else x + residual
    y = torch.nn.functional.layer_norm(h, weight.shape, weight, bias, eps)
    return y if residual is None else (y, h)


def _torch_rms_norm(x: Any, weight: Any, eps: float = 1e-6, residual: Any = None) -> Normed:
    h = x if residual is None else x + residual
    y = torch.nn.functional.rms_norm(h, weight.shape, weight, eps)
    return y if residual is None else (y, h)


def _inputs(center: bool, sizes: Mapping[str, Any], dtype: str, device: str, seed: int) -> Inputs:  # noqa: FBT001
    draw = Draw(dtype, device, seed)
    m, n = sizes["M"], sizes["N"]
    x, weight = draw.normal(m, n), 1 + draw.normal(n) / 4
    named = {"residual": draw.normal(m, n)} if sizes.get("residual") else {}
    if center and sizes.get("bias", True):
        named["bias"] = draw.normal(n)
    return Inputs((x, weight), named)


def _cost(sizes: Mapping[str, Any], dtype: str) -> Cost:
    count, size = sizes["M"] * sizes["N"], getattr(torch, dtype).itemsize
    tensors = 2 if sizes.get("residual") else 1
    return Cost(tensors * count * size + 2 * sizes["N"] * size, tensors * count * size, 8 * count)


def _spec(name: str, function: Any, reference: Any, library: Any, *, center: bool) -> KernelSpec:
    widths = (1, 2, 127, 128, 129, 1025)
    return KernelSpec(
        name=name,
        function=function,
        reference=reference,
        fallback=reference,
        library=library,
        inputs=partial(_inputs, center),
        buckets=jit.BUCKETS,
        shapes={
            "other": ({"M": 2048, "N": 32768},),
            "prefill": ({"M": 16384, "N": 4096}, {"M": 8192, "N": 8192, "residual": True}, {"M": 8192, "N": 5120}),
            "decode": ({"M": 8, "N": 4096, "residual": True}, {"M": 256, "N": 8192}),
            "head": ({"M": 262144, "N": 128}, {"M": 65536, "N": 1024}),
        },
        edges=(
            *({"M": 5, "N": n, "residual": n % 2 == 1, "bias": n != 128} for n in widths),
            {"M": 67, "N": 16},  # more tiles of rows than programs
            {"M": 2, "N": jit.ONE_BLOCK_BACKWARD + 1},
            {"M": 2, "N": jit.ONE_BLOCK, "residual": True},
            {"M": 5, "N": jit.ONE_BLOCK + 1, "residual": True},
            {"M": 0, "N": 8},
            {"M": 8, "N": 0, "residual": True},
        ),
        dtypes=("float32", "float16", "bfloat16"),
        tolerance={"float32": 2e-6, "float16": 1e-3, "bfloat16": 8e-3},
        cost=_cost,
        triton_functions=(jit.ROWS, jit.ROWS_BACKWARD, jit.LONG, jit.LONG_BACKWARD, jit.COLUMNS_BACKWARD),
        gradients=("x", "weight", "bias", "residual") if center else ("x", "weight", "residual"),
    )


SPECS = (
    _spec("layer_norm", layer_norm, _layer_norm, _torch_layer_norm, center=True),
    _spec("rms_norm", rms_norm, _rms_norm, _torch_rms_norm, center=False),
)
