"""Quantization in torch operators: the reference, and what serves where the kernels cannot.

In float32 it gives the kernels' very bits: the same products, in the same order, rounded once each.
"""

from __future__ import annotations

from typing import Final

import torch
from torch.nn import functional

LARGEST: Final = {torch.int8: 127.0, torch.float8_e4m3fn: 448.0}  # -128 is not used: the range is symmetric
SMALLEST_SCALE: Final = 2.0**-126  # the smallest normal number, whose inverse is finite
TENSOR: Final = 0  # columns per group that stand for: all of the tensor


def scale_shape(x: torch.Tensor, columns: int) -> tuple[int, ...]:
    """Of the scales of x: (), or (..., groups per row)."""
    return () if columns == TENSOR else (*x.shape[:-1], max(1, -(-x.shape[-1] // columns)))


def to_scale(largest: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Scale of groups whose largest magnitude is known; a NaN stays."""
    return (largest * (1 / LARGEST[dtype])).clamp_min(SMALLEST_SCALE)


def prologue(x: torch.Tensor, other: torch.Tensor | None, name: str, eps: float) -> torch.Tensor:
    """What the fused neighbour computes, in float32 or, of float64, in that."""
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    if name == "silu_mul":
        return functional.silu(wide) * other
    if name == "rms_norm":
        return wide * (wide.square().mean(-1, keepdim=True) + eps).rsqrt() * other
    return wide


def quantize(x: torch.Tensor, dtype: torch.dtype, columns: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Values of 8 bits, and scales, of wide values, as the operator gives them.

    In float32 also where x is wider: bfloat16 over its largest often lies halfway between two values of 8 bits, and
    which of them is nearest is defined by the operator's own arithmetic.
    """
    x = x.float()
    shape = scale_shape(x, columns)
    if not x.numel():
        return x.to(dtype), x.new_full(shape, SMALLEST_SCALE)
    if columns == TENSOR:
        largest = x.abs().amax()
    else:
        padded = functional.pad(x.abs(), (0, shape[-1] * columns - x.shape[-1]))
        largest = padded.unflatten(-1, (shape[-1], columns)).amax(-1)
    scale = to_scale(largest, dtype)
    each = spread(scale, x, columns)
    value = torch.where(each.isfinite(), x * (1 / each), 0).clamp(-LARGEST[dtype], LARGEST[dtype])
    return (value.round() if dtype == torch.int8 else value).to(dtype), scale


def dequantize(q: torch.Tensor, scale: torch.Tensor, dtype: torch.dtype, columns: int) -> torch.Tensor:
    """Values of q, computed in the scale's dtype."""
    return (q.to(scale.dtype) * spread(scale, q, columns)).to(dtype)


def spread(scale: torch.Tensor, x: torch.Tensor, columns: int) -> torch.Tensor:
    """The scales, such that they broadcast to x."""
    if columns == TENSOR or scale.shape[-1] == 1:
        return scale
    return scale.repeat_interleave(columns, -1)[..., : x.shape[-1]]
