"""act(a b + bias) + residual in one kernel: matrices or batches of them, of any strides."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import torch
import triton

from tprof.kernelspec import Cost, Inputs, KernelSpec
from tprof_kernels.activations import activated, check_activation
from tprof_kernels.checks import FLOATS, check_device, check_dtype, check_float8, check_shape, check_size
from tprof_kernels.draw import Draw
from tprof_kernels.matmul_jit import BUCKETS, TILES

if TYPE_CHECKING:
    from collections.abc import Mapping

Optional = torch.Tensor | None
FLOAT8 = torch.float8_e4m3fn
PRECISIONS: Final = ("tf32x3", "tf32", "ieee")
EVEN_STEP = 256  # bytes: every candidate's step along K divides it


def matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: Optional = None,
    residual: Optional = None,
    *,
    activation: str = "none",
    precision: str = "tf32x3",
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """act(a b + bias) + residual, summed in float32.

    Differentiable by its four tensors (not in float8): two products like this one, and where there is an activation a
    third that computes its argument again instead of keeping it. The tiles' order is that of Triton's tutorial 03.

    Args:
        a: (..., M, K) in float32, float16, bfloat16, or float8_e4m3fn from compute capability 8.9 on. Any strides:
            a transposed operand is read in place.
        b: (K, N) or (..., K, N) of a's dtype; batch dimensions are broadcast.
        bias: (N,), float32, float16 or bfloat16.
        residual: of the result's shape and one of these dtypes; added last.
        activation: "none", "relu", "silu", "gelu" (exact) or "gelu_tanh".
        precision: of float32 products. "tf32x3" multiplies parts of the values on tensor cores and keeps 21 of 24 bits;
            "tf32" keeps 11; "ieee" all, without tensor cores.
        out_dtype: of the result; a's by default, bfloat16 for float8.

    Returns:
        A contiguous tensor (..., M, N).

    Raises:
        TypeError: a dtype is not supported, or a and b differ.
        ValueError: a word is unknown; shapes do not fit; tensors are on several devices or on no GPU, or span more
            than 2^31 - 1 elements.
    """
    check_activation(activation)
    if precision not in PRECISIONS:
        raise ValueError(f"precision is {precision!r}; known are {', '.join(PRECISIONS)}")
    if a.dim() < 2 or b.dim() < 2 or a.shape[-1] != b.shape[-2]:
        raise ValueError(
            f"a of shape {tuple(a.shape)} and b of shape {tuple(b.shape)} are no (..., M, K) and (..., K, N)"
        )
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    shape = (*batch, a.shape[-2], b.shape[-1])
    if residual is not None:
        check_shape("residual", residual, shape)
    if b.dim() == 2:  # one b for all: the batch only makes a taller
        a, b = a.reshape(1, math.prod(a.shape[:-1]), a.shape[-1]), b[None]
    else:
        a, b = (x.expand(*batch, *x.shape[-2:]).reshape(math.prod(batch), *x.shape[-2:]) for x in (a, b))
    flat = None if residual is None else residual.reshape(a.shape[0], a.shape[1], shape[-1])
    dtype = out_dtype or (torch.bfloat16 if a.dtype == FLOAT8 else a.dtype)
    return torch.ops.tprof_kernels.matmul(a, b, bias, flat, activation, precision, dtype).view(shape)


@torch.library.custom_op("tprof_kernels::matmul", mutates_args=())
def _matmul(
    a: torch.Tensor,
    b: torch.Tensor,
    bias: Optional,
    residual: Optional,
    activation: str,
    precision: str,
    out_dtype: torch.dtype,
) -> torch.Tensor:
    """One launch for (B, M, K), (B, K, N), bias (N,) and residual (B, M, N)."""
    check_dtype((*FLOATS, FLOAT8), a=a)
    check_dtype((a.dtype,), b=b)
    check_dtype(FLOATS, bias=bias, residual=residual)
    check_device(a=a, b=b, bias=bias, residual=residual)
    check_float8(a=a)
    (batch, m, k), n = a.shape, b.shape[2]
    if bias is not None:
        check_shape("bias", bias, (n,))
        bias = bias.contiguous()
    out = torch.empty(batch, m, n, dtype=out_dtype, device=a.device)
    check_size(a=a, b=b, residual=residual, out=out)
    if out.numel():
        TILES.launch(
            lambda meta: (batch * triton.cdiv(m, meta["BLOCK_M"]) * triton.cdiv(n, meta["BLOCK_N"]),),
            {"M": m, "N": n, "K": k},
            *(out, a, b, bias, residual, m, n, k, m if a.stride(1) == 1 else None),
            *(*a.stride(), *b.stride(), *((0, 0, 0) if residual is None else residual.stride())),
            ACTIVATION=activation, PRECISION=precision, EVEN_K=k * a.element_size() % EVEN_STEP == 0,
        )  # fmt: skip
    return out


@_matmul.register_fake
def _(a, b, bias, residual, activation, precision, out_dtype):
    return a.new_empty(a.shape[0], a.shape[1], b.shape[2], dtype=out_dtype)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    a, b, bias, residual, ctx.activation, ctx.precision, _ = inputs
    ctx.save_for_backward(a, b, bias)
    ctx.residual = None if residual is None else residual.dtype


def _backward(ctx: Any, dy: torch.Tensor) -> tuple[Any, ...]:
    a, b, bias = ctx.saved_tensors
    multiply = torch.ops.tprof_kernels.matmul
    dz = dy
    if ctx.activation != "none":
        dz = _derivative(ctx.activation, dy, multiply(a, b, bias, None, "none", ctx.precision, dy.dtype))
    grad, wanted = dz.to(a.dtype), ctx.needs_input_grad
    da = multiply(grad, b.mT, None, None, "none", ctx.precision, a.dtype) if wanted[0] else None
    db = multiply(a.mT, grad, None, None, "none", ctx.precision, b.dtype) if wanted[1] else None
    dbias = dz.sum((0, 1), dtype=torch.float32).to(bias.dtype) if wanted[2] else None
    return da, db, dbias, dy.to(ctx.residual) if wanted[3] else None, None, None, None


def _derivative(activation: str, dy: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
    """The gradient dy times the activation's derivative at z."""
    if activation == "relu":
        return torch.ops.aten.threshold_backward(dy, z, 0)
    if activation == "silu":
        return torch.ops.aten.silu_backward(dy, z)
    return torch.ops.aten.gelu_backward(dy, z, approximate="tanh" if activation == "gelu_tanh" else "none")


_matmul.register_autograd(_backward, setup_context=_setup)


# ---- what it promises


def _torch(
    a: torch.Tensor, b: torch.Tensor, bias: Optional = None, residual: Optional = None, **kwargs: Any
) -> torch.Tensor:
    """In torch operators; float8 values are multiplied in float32, as torch has no product of them of any strides."""
    out = kwargs.get("out_dtype") or (torch.bfloat16 if a.dtype == FLOAT8 else a.dtype)
    if a.dtype == FLOAT8:
        a, b = a.float(), b.float()
    return _epilogue(a @ b, bias, residual, kwargs.get("activation", "none")).to(out)


def _epilogue(y: torch.Tensor, bias: Optional, residual: Optional, activation: str) -> torch.Tensor:
    y = activated(y if bias is None else y + bias, activation)
    return y if residual is None else y + residual


def _library(
    a: torch.Tensor, b: torch.Tensor, bias: Optional = None, residual: Optional = None, **kwargs: Any
) -> torch.Tensor:
    """cuBLAS, by `_scaled_mm` for float8, and torch's operators for what follows the product."""
    aligned = a.dim() == b.dim() == 2 and b.stride(0) == 1 and not any(size % 16 for size in b.shape)
    if a.dtype != FLOAT8 or not aligned or a.device.type == "cpu":
        return _torch(a, b, bias, residual, **kwargs)
    one = torch.ones((), device=a.device)
    y = torch._scaled_mm(a, b, one, one, out_dtype=torch.bfloat16)  # noqa: SLF001 - torch's only float8 product
    return _epilogue(y, bias, residual, kwargs.get("activation", "none"))


def _reference(
    a: torch.Tensor, b: torch.Tensor, bias: Optional = None, residual: Optional = None, **kwargs: Any
) -> torch.Tensor:
    return _torch(a, b, bias, residual, activation=kwargs.get("activation", "none"), out_dtype=a.dtype)


def _inputs(sizes: Mapping[str, Any], dtype: str, device: str, seed: int) -> Inputs:
    """`B`: a batch; `one_b`: one b for all of it; `epilogue`: bias and residual. A float8 b is column-major."""
    draw = Draw(dtype, device, seed)
    m, n, k = sizes["M"], sizes["N"], sizes["K"]
    batch = (sizes["B"],) if "B" in sizes else ()
    own = () if sizes.get("one_b") else batch
    a = draw.normal(*batch, m, k)
    b = draw.normal(*own, n, k).mT if dtype == "float8_e4m3fn" else draw.normal(*own, k, n)
    kind = torch.bfloat16 if dtype == "float8_e4m3fn" else draw.dtype
    more = (draw.normal(n, dtype=kind), draw.normal(*batch, m, n, dtype=kind)) if sizes.get("epilogue") else ()
    return Inputs((a, b, *more), {word: sizes[word] for word in ("activation", "precision") if word in sizes})


def _cost(sizes: Mapping[str, Any], dtype: str) -> Cost:
    m, n, k, batch = sizes["M"], sizes["N"], sizes["K"], sizes.get("B", 1)
    size = getattr(torch, dtype).itemsize
    more = n + batch * m * n if sizes.get("epilogue") else 0
    read = batch * m * k + (1 if sizes.get("one_b") else batch) * k * n + more
    return Cost(size * read, max(size, 2) * batch * m * n, 2 * batch * m * n * k)


SPECS = (
    KernelSpec(
        name="matmul",
        function=matmul,
        reference=_reference,
        fallback=_torch,
        library=_library,
        inputs=_inputs,
        buckets=BUCKETS,
        shapes={
            "decode": ({"M": 16, "N": 4096, "K": 4096}, {"M": 64, "N": 14336, "K": 4096}),
            "small": (
                {"M": 512, "N": 4096, "K": 4096},
                {"M": 512, "N": 512, "K": 64, "B": 64},
                {"M": 512, "N": 4096, "K": 4096, "precision": "ieee"},
            ),
            "large": (
                {"M": 4096, "N": 4096, "K": 4096},
                {"M": 8192, "N": 8192, "K": 8192},
                {"M": 4096, "N": 14336, "K": 4096, "epilogue": True, "activation": "gelu_tanh"},
            ),
            "other": ({"M": 131073, "N": 128, "K": 64},),
        },
        edges=(
            {"M": 33, "N": 47, "K": 65},
            {"M": 1, "N": 1, "K": 1},
            *({"M": m, "N": 129 - m, "K": 64} for m in (63, 64, 65)),
            {"M": 17, "N": 64, "K": 256, "epilogue": True},
            {"M": 18, "N": 33, "K": 65, "precision": "ieee"},
            {"M": 127, "N": 66, "K": 31, "epilogue": True, "activation": "gelu"},
            {"M": 66, "N": 31, "K": 130, "epilogue": True, "activation": "silu", "B": 2},
            {"M": 65, "N": 16, "K": 16, "activation": "relu", "B": 3, "one_b": True},
            {"M": 5, "N": 7, "K": 13, "epilogue": True, "activation": "gelu_tanh", "B": 2},
            {"M": 3, "N": 5, "K": 0, "epilogue": True},
            {"M": 0, "N": 5, "K": 4},
            {"M": 4, "N": 0, "K": 4},
            {"M": 4, "N": 5, "K": 6, "B": 0},
        ),
        dtypes=("float32", "float16", "bfloat16", "float8_e4m3fn"),
        tolerance={"float32": 2e-6, "float16": 1e-3, "bfloat16": 8e-3, "float8_e4m3fn": 8e-3},
        cost=_cost,
        triton_functions=(TILES,),
        gradients=("a", "b", "bias", "residual"),
    ),
)
