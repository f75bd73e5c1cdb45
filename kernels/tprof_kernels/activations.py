"""Activations by name: what kernels apply to float32 values in registers, and the same in torch."""

from __future__ import annotations

from typing import Final

import torch
import triton
import triton.language as tl

ACTIVATIONS: Final = ("none", "relu", "silu", "gelu", "gelu_tanh")


@triton.jit
def activate(x, ACTIVATION: tl.constexpr):
    """The activation of x; its name was checked on the host."""
    if ACTIVATION == "relu":
        x = tl.where(x < 0, 0.0, x)  # not maximum: a NaN stays
    elif ACTIVATION == "silu":
        x = x * tl.sigmoid(x)
    elif ACTIVATION == "gelu":
        x = 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))
    elif ACTIVATION == "gelu_tanh":  # tanh(u) = 2 sigmoid(2u) - 1, and Triton has no tanh of its own
        x = x * tl.sigmoid(1.5957691216057308 * (x + 0.044715 * x * x * x))
    return x


def activated(x: torch.Tensor, name: str) -> torch.Tensor:
    """The same in torch, of any floating dtype."""
    functional = torch.nn.functional
    if name == "gelu_tanh":
        return functional.gelu(x, approximate="tanh")
    return x if name == "none" else getattr(functional, name)(x)


def check_activation(name: str) -> None:
    """The activation exists.

    Raises:
        ValueError: it does not.
    """
    if name not in ACTIVATIONS:
        raise ValueError(f"activation is {name!r}; known are {', '.join(ACTIVATIONS)}")
