"""bias + activation + dropout + scale + residual in one pass over memory, forward and backward."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
import triton

from tprof.kernelspec import Cost, Inputs, KernelSpec
from tprof_kernels import elementwise_jit as jit
from tprof_kernels.activations import activated, check_activation
from tprof_kernels.checks import FLOATS, check_device, check_dtype, check_shape, check_size
from tprof_kernels.draw import Draw
from tprof_kernels.rows import as_rows
from tprof_kernels.tiles import programs, steps

if TYPE_CHECKING:
    from collections.abc import Mapping


def fused_elementwise(
    x: torch.Tensor,
    bias: torch.Tensor | None = None,
    residual: torch.Tensor | None = None,
    activation: str = "none",
    dropout: float = 0.0,
    seed: int = 0,
    scale: float = 1.0,
) -> torch.Tensor:
    """One pass for residual + scale * dropout(activation(x + bias)), computed in float32.

    Dropout keeps an element if the Philox word of (seed, row, column) says so: the same seed gives the same mask for
    every config, GPU and layout. A seed must be used once: draw a new one for each call, as for each training step.

    Args:
        x: (..., N); float32, float16 or bfloat16. Read in place where one step reaches every row, else copied once.
        bias: (N,), of any of these dtypes; None adds nothing.
        residual: of x's shape and dtype; None adds nothing.
        activation: `none`, `relu`, `silu`, `gelu` (exact) or `gelu_tanh` (its approximation by tanh;
            both Hendrycks and Gimpel, arXiv:1606.08415).
        dropout: probability with which an element becomes 0, in [0, 1); the others are divided by 1 - dropout.
        seed: of the mask, from 0 to 2^31 - 1.
        scale: factor of the branch, before the residual is added.

    Returns:
        A contiguous tensor of x's shape and dtype; differentiable by x, bias and residual. The backward reads x and
        draws the mask again; it adds in a fixed order, so it gives the same bits each time on one kind of device.

    Raises:
        TypeError: a tensor has another dtype.
        ValueError: a tensor has another shape, is not on x's GPU, or spans more than 2^31 - 1 elements; or an
            activation, probability or seed is none.
    """
    return torch.ops.tprof_kernels.fused_elementwise(x, bias, residual, activation, dropout, seed, scale)


@torch.library.custom_op("tprof_kernels::fused_elementwise", mutates_args=())
def _fused(
    x: torch.Tensor,
    bias: torch.Tensor | None,
    residual: torch.Tensor | None,
    activation: str,
    dropout: float,
    seed: int,
    scale: float,
) -> torch.Tensor:
    _check(x, bias, residual)
    _check_settings(activation, dropout, seed)
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    if x.numel():
        rows, added = as_rows(x, -1), None if residual is None else as_rows(residual, -1)
        (m, n), block = rows.shape, _block(x)
        jit.FORWARD.launch(
            lambda meta: (triton.cdiv(n, block) * triton.cdiv(m, max(1, meta["TILE"] // block)),),
            {"M": m, "N": n}, y, rows, _dense(bias), added, m, n, *rows.stride(), *steps(added),
            *_scalars(dropout, seed, scale), ACTIVATION=activation, DROPOUT=dropout > 0, BLOCK_N=block,
        )  # fmt: skip
    return y


@torch.library.custom_op("tprof_kernels::fused_elementwise_backward", mutates_args=())
def _fused_backward(
    dy: torch.Tensor,
    x: torch.Tensor,
    bias: torch.Tensor | None,
    activation: str,
    dropout: float,
    seed: int,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients by x, and by bias in float32 (or nothing)."""
    check_size(dy=dy)
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    size = 0 if bias is None else x.shape[-1]
    if not x.numel():
        return dx, x.new_zeros(size, dtype=torch.float32)
    rows, grads = as_rows(x, -1), as_rows(dy, -1)
    (m, n), block = rows.shape, _block(x)
    across = triton.cdiv(n, block)
    count = programs(x.device, m, across)
    sums = torch.empty((count, size), dtype=torch.float32, device=x.device)
    jit.BACKWARD.launch(
        (count * across,), {"M": m, "N": n}, dx, sums if size else None, rows, _dense(bias), grads, m, n,
        *rows.stride(), *grads.stride(), *_scalars(dropout, seed, scale), count,
        ACTIVATION=activation, DROPOUT=dropout > 0, BLOCK_N=block,
    )  # fmt: skip
    return dx, sums.sum(0)


def _check(x: torch.Tensor, bias: torch.Tensor | None, residual: torch.Tensor | None) -> None:
    check_dtype(FLOATS, x=x, bias=bias)
    check_device(x=x, bias=bias, residual=residual)
    check_size(x=x, residual=residual)
    if bias is not None:
        check_shape("bias", bias, tuple(x.shape[-1:]))
    if residual is not None:
        check_dtype((x.dtype,), residual=residual)
        check_shape("residual", residual, tuple(x.shape))


def _check_settings(activation: str, dropout: float, seed: int) -> None:
    check_activation(activation)
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout is {dropout}; it must be a probability of at least 0 and less than 1")
    if not 0 <= seed < 2**31:
        raise ValueError(f"seed is {seed}; it must lie in 0 to 2^31 - 1, so that no seed compiles a 64-bit variant")


def _scalars(dropout: float, seed: int, scale: float) -> tuple[float, int, int]:
    """What the kernels take: factor of a kept element, seed, and the smallest 31-bit word that is kept."""
    return scale / (1 - dropout), seed, min(2**31 - 1, round(dropout * 2**31))


def _block(x: torch.Tensor) -> int:
    """Columns of a tile; at least the four of a Philox call."""
    return min(jit.WIDEST, max(4, triton.next_power_of_2(x.shape[-1])))


def _dense(tensor: torch.Tensor | None) -> torch.Tensor | None:
    return None if tensor is None else tensor.contiguous()


@_fused.register_fake
def _(x, bias, residual, activation, dropout, seed, scale):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


@_fused_backward.register_fake
def _(dy, x, bias, activation, dropout, seed, scale):
    size = 0 if bias is None else x.shape[-1]
    return torch.empty(x.shape, dtype=x.dtype, device=x.device), x.new_empty(size, dtype=torch.float32)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, bias, residual, *ctx.settings = inputs
    ctx.residual = residual is not None
    ctx.save_for_backward(x, bias)


def _backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    x, bias = ctx.saved_tensors
    dx, dbias = torch.ops.tprof_kernels.fused_elementwise_backward(dy, x, bias, *ctx.settings)
    return dx, None if bias is None else dbias.to(bias.dtype), dy if ctx.residual else None, None, None, None, None


_fused.register_autograd(_backward, setup_context=_setup)


# ---- what it promises


def keep_mask(rows: int, columns: int, dropout: float, seed: int, device: torch.device | str = "cpu") -> torch.Tensor:
    """The elements that dropout keeps, (rows, columns) of bool: the kernels' Philox 4x32-10, in torch."""
    quads = -(-columns // 4)
    zero = torch.zeros((rows, quads), dtype=torch.int64, device=device)
    counter = (zero + torch.arange(quads, device=device), zero + torch.arange(rows, device=device)[:, None], zero, zero)
    words = torch.stack(philox(counter, (seed, 0)), -1).reshape(rows, 4 * quads)[:, :columns]
    return (words >> 1) >= _scalars(dropout, seed, 1.0)[2]


def philox(counter: tuple[torch.Tensor, ...], key: tuple[int, int]) -> tuple[torch.Tensor, ...]:
    """Philox 4x32-10: four words from a counter of four words, each held in an int64."""
    low = 0xFFFFFFFF
    a, b, c, d = (word & low for word in counter)  # no pure index to Inductor, which would multiply it in 32 bits
    for i in range(10):
        left, right = 0xD2511F53 * a, 0xCD9E8D57 * c  # an int64 may wrap; the two halves are right nevertheless
        k, m = (key[0] + i * 0x9E3779B9) & low, (key[1] + i * 0xBB67AE85) & low
        a, b, c, d = (right >> 32) & low ^ b ^ k, right & low, (left >> 32) & low ^ d ^ m, left & low
    return a, b, c, d


def _plain(
    x: Any, bias: Any = None, residual: Any = None,
    activation: str = "none", dropout: float = 0.0, seed: int = 0, scale: float = 1.0,
) -> torch.Tensor:  # fmt: skip
    u = x.to(torch.promote_types(x.dtype, torch.float32))
    u = u if bias is None else u + bias
    value = activated(u, activation) * (scale / (1 - dropout))
    if dropout:
        count = x.numel() // x.shape[-1]
        value = torch.where(keep_mask(count, x.shape[-1], dropout, seed, x.device).view(x.shape), value, 0)
    return (value if residual is None else value + residual).to(x.dtype)


def _inputs(sizes: Mapping[str, Any], dtype: str, device: str, seed: int) -> Inputs:
    draw = Draw(dtype, device, seed)
    m, n = sizes["M"], sizes["N"]
    settings = {"activation": "gelu", **{k: v for k, v in sizes.items() if k in {"activation", "dropout", "scale"}}}
    if sizes.get("bias", True):
        settings["bias"] = draw.normal(n)
    if sizes.get("residual", True):
        settings["residual"] = draw.normal(m, n)
    return Inputs((draw.normal(m, n),), {**settings, "seed": seed + 1})


def _cost(sizes: Mapping[str, Any], dtype: str) -> Cost:
    count, size = sizes["M"] * sizes["N"], getattr(torch, dtype).itemsize
    read = (2 if sizes.get("residual", True) else 1) * count + sizes["N"] * bool(sizes.get("bias", True))
    return Cost(read * size, count * size, 12 * count)


SPECS = (
    KernelSpec(
        name="fused_elementwise",
        function=fused_elementwise,
        reference=_plain,
        fallback=_plain,
        inputs=_inputs,
        buckets=jit.BUCKETS,
        shapes={
            "decode": ({"M": 8, "N": 4096}, {"M": 256, "N": 14336, "activation": "silu", "residual": False}),
            "prefill": (
                {"M": 16384, "N": 4096},
                {"M": 8192, "N": 14336, "activation": "gelu_tanh", "residual": False},
                {"M": 8192, "N": 8192, "dropout": 0.1},
            ),
            "other": ({"M": 65536, "N": 256, "activation": "relu"},),
        },
        edges=(
            {"M": 3, "N": 1},
            {"M": 2, "N": 3, "activation": "silu", "dropout": 0.5},
            {"M": 67, "N": 16, "activation": "relu", "bias": False},
            {"M": 5, "N": 127, "activation": "gelu_tanh", "dropout": 0.25, "scale": 0.5},
            {"M": 5, "N": 128, "residual": False, "dropout": 0.1},
            {"M": 3, "N": 1023, "activation": "none", "residual": False, "bias": False, "scale": -2.0},
            {"M": 2, "N": 1024, "dropout": 0.9},
            {"M": 9, "N": 1025, "activation": "silu", "dropout": 0.1},
            {"M": 1, "N": 4099, "activation": "gelu_tanh"},
            {"M": 0, "N": 8},
            {"M": 8, "N": 0},
        ),
        dtypes=("float32", "float16", "bfloat16"),
        tolerance={"float32": 2e-6, "float16": 1e-3, "bfloat16": 8e-3},
        cost=_cost,
        triton_functions=(jit.FORWARD, jit.BACKWARD),
        gradients=("x", "bias", "residual"),
    ),
)
