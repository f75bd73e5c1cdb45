"""Quantization to int8 and float8 (e4m3), alone and fused with its neighbour, and back.

A value is `q * scale`. The scale of a group - the tensor, a row, or a block of columns - is its largest magnitude
divided by the largest of the dtype (127, 448), and at least 2^-126: a group of zeros gives zeros. Values are multiplied
by 1 / scale, rounded to the nearest (ties to even), and saturate. A group that holds an infinity or NaN gets a scale
that is not finite and values of 0, so all of it is NaN when it is read back: an overflow stays visible.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import triton

from tprof.kernelspec import Cost, Inputs, KernelSpec
from tprof_kernels import quant_jit as jit
from tprof_kernels import quant_plain as plain
from tprof_kernels.checks import FLOATS, check_device, check_dtype, check_shape, check_size, has_float8
from tprof_kernels.draw import Draw
from tprof_kernels.quant_plain import LARGEST, SMALLEST_SCALE, TENSOR
from tprof_kernels.rows import as_rows
from tprof_kernels.tiles import row_grid, steps
from tprof_kernels.tuned import fell_back

if TYPE_CHECKING:
    from collections.abc import Mapping

Quantized = tuple[torch.Tensor, torch.Tensor]


def quantize(x: torch.Tensor, dtype: torch.dtype = torch.int8, group: str | int = "row") -> Quantized:
    """Round a tensor to 8 bits, with a scale per group.

    Groups of up to 32,768 columns are read once, longer rows and whole tensors twice. On GPUs before compute capability
    8.9, which lack float8, torch operators give the same values.

    Args:
        x: (..., N); float32, float16 or bfloat16. Read in place where one step reaches every row, else copied once.
        dtype: int8, or float8_e4m3fn (Micikevicius et al., arXiv:2209.05433).
        group: `tensor`, `row`, or columns per block, such as 128; the last block of a row may be narrower.

    Returns:
        q, contiguous, of x's shape; and the scales, in float32: (), (..., 1) or (..., blocks). Neither has a gradient.

    Raises:
        TypeError: x has another dtype, or dtype is another.
        ValueError: x is not on a GPU or spans more than 2^31 - 1 elements; or group is none, or a block too wide.
    """
    return _quantized(x, None, "none", dtype, _columns(group, x.shape[-1]))


def silu_mul_quantize(
    gate: torch.Tensor, up: torch.Tensor, dtype: torch.dtype = torch.int8, group: str | int = "row"
) -> Quantized:
    """`quantize(silu(gate) * up)`, what a gated MLP hands to its second product, in one pass.

    Arguments, results and errors are those of `quantize`; up has gate's shape and dtype, and group is not `tensor`. The
    product is never rounded to gate's dtype; in rows of more than 32,768 columns torch writes it in float32 first.
    """
    if group == "tensor":
        raise ValueError("group is 'tensor', whose scale is known only after the product is written; use 'row' or 128")
    return _quantized(gate, up, "silu_mul", dtype, _columns(group, gate.shape[-1]))


def rms_norm_quantize(
    x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6, dtype: torch.dtype = torch.int8
) -> Quantized:
    """`quantize(rms_norm(x, weight, eps))` per row, what a norm hands to the next product, in one pass.

    Arguments, results and errors are those of `rms_norm` and `quantize`. The norm is never rounded to x's dtype; in
    rows of more than 32,768 columns torch writes it in float32 first.
    """
    return _quantized(x, weight, "rms_norm", dtype, max(1, x.shape[-1]), eps)


def dequantize(
    q: torch.Tensor, scale: torch.Tensor, dtype: torch.dtype = torch.bfloat16, group: str | int = "row"
) -> torch.Tensor:
    """Read back what `quantize` rounded: q * scale, computed in float32.

    Args:
        q: (..., N) of int8 or float8_e4m3fn.
        scale: of float32; (), (..., 1) or (..., blocks), as `quantize` gives it for this group.
        dtype: of the result: float32, float16 or bfloat16.
        group: as it was quantized.

    Returns:
        A contiguous tensor of q's shape.

    Raises:
        TypeError: a tensor has another dtype, or dtype is another.
        ValueError: scale has another shape or device, q spans more than 2^31 - 1 elements, or group is none.
    """
    return torch.ops.tprof_kernels.dequantize(q, scale, dtype, _columns(group, q.shape[-1]))


def _columns(group: str | int, n: int) -> int:
    """Columns per group, 0 for the whole tensor."""
    if group == "row":
        return max(1, n)
    if group == "tensor":
        return TENSOR
    if isinstance(group, int) and group > 0:
        return group
    raise ValueError(f"group is {group!r}; it must be 'tensor', 'row', or a number of columns such as 128")


def _quantized(
    x: torch.Tensor, other: torch.Tensor | None, prologue: str, dtype: torch.dtype, columns: int, eps: float = 0.0
) -> Quantized:
    return torch.ops.tprof_kernels.quantize(x, other, prologue, dtype, columns, eps)


@torch.library.custom_op("tprof_kernels::quantize", mutates_args=())
def _quantize(
    x: torch.Tensor, other: torch.Tensor | None, prologue: str, dtype: torch.dtype, columns: int, eps: float
) -> tuple[torch.Tensor, torch.Tensor]:
    _check(x, other, prologue, dtype)
    n = x.shape[-1]
    if columns != TENSOR and columns < n and columns > jit.ONE_BLOCK:
        raise ValueError(f"group is {columns}; a block has at most {jit.ONE_BLOCK:,} columns; use 'row'")
    if dtype == torch.float8_e4m3fn and not has_float8(x.device):
        fell_back("quantize")
        return plain.quantize(plain.prologue(x, other, prologue, eps), dtype, columns)
    q, scale = _outputs(x, dtype, columns)
    if not x.numel():
        return q, scale.fill_(SMALLEST_SCALE)
    if columns == TENSOR or min(columns, n) > jit.ONE_BLOCK:
        scale.copy_(_two_passes(q, _written(x, other, prologue, eps), columns))
    else:
        _one_pass(q, scale, x, other, prologue, columns, eps)
    return q, scale


def _one_pass(
    q: torch.Tensor, scale: torch.Tensor, x: torch.Tensor, other: Any, prologue: str, columns: int, eps: float
) -> None:
    rows = as_rows(x, -1)
    operand = as_rows(other, -1) if prologue == "silu_mul" else None
    (m, n), across = rows.shape, scale.shape[-1]
    block = triton.next_power_of_2(min(columns, n))
    jit.GROUPS.launch(
        row_grid(m * across, block), {"M": m, "N": n}, q, scale, rows,
        other.contiguous() if prologue == "rms_norm" else operand,
        m * across, n, columns, across, *rows.stride(), *steps(operand), eps,
        LARGEST=LARGEST[q.dtype], PROLOGUE=prologue, BLOCK_N=block,
    )  # fmt: skip


def _two_passes(q: torch.Tensor, x: torch.Tensor, columns: int) -> torch.Tensor:
    """Fill q; returns the scales. Between the two kernels torch finds the maximum of a few values per row."""
    rows = as_rows(x, -1)
    (m, n), block = rows.shape, _line(x)
    across = triton.cdiv(n, block)
    grid, sizes = row_grid(m * across, block), {"M": m, "N": n}
    found = torch.empty((*x.shape[:-1], across), dtype=torch.float32, device=x.device)
    jit.LARGEST.launch(grid, sizes, found, rows, m * across, n, across, *rows.stride(), BLOCK_N=block)
    scale = plain.to_scale(found.amax() if columns == TENSOR else found.amax(-1, keepdim=True), q.dtype)
    jit.SCALED.launch(
        grid, sizes, q, rows, scale, m * across, n, across, *rows.stride(), int(columns != TENSOR),
        LARGEST=LARGEST[q.dtype], BLOCK_N=block,
    )  # fmt: skip
    return scale


def _written(x: torch.Tensor, other: torch.Tensor | None, prologue: str, eps: float) -> torch.Tensor:
    """What the neighbour writes where it cannot be fused: in float32, so that q is as exact as where it can."""
    if prologue == "none":
        return x
    fell_back(f"{prologue}_quantize")
    return plain.prologue(x, other, prologue, eps)


def _line(x: torch.Tensor) -> int:
    """Columns of a tile where the scale is known."""
    return min(jit.WIDEST, triton.next_power_of_2(x.shape[-1]))


def _check(x: torch.Tensor, other: torch.Tensor | None, prologue: str, dtype: torch.dtype) -> None:
    first, second = {"silu_mul": ("gate", "up"), "rms_norm": ("x", "weight")}.get(prologue, ("x", ""))
    if dtype not in LARGEST:
        raise TypeError(f"dtype is {dtype}; supported are int8 and float8_e4m3fn")
    check_dtype(FLOATS, **{first: x})
    check_size(**{first: x})
    if other is None:
        check_device(**{first: x})
        return
    check_device(**{first: x, second: other})
    check_dtype(FLOATS if prologue == "rms_norm" else (x.dtype,), **{second: other})
    check_size(**{second: other})
    check_shape(second, other, tuple(x.shape[-1:] if prologue == "rms_norm" else x.shape))


@torch.library.custom_op("tprof_kernels::dequantize", mutates_args=())
def _dequantize(q: torch.Tensor, scale: torch.Tensor, dtype: torch.dtype, columns: int) -> torch.Tensor:
    check_dtype(tuple(LARGEST), q=q)
    check_dtype((torch.float32,), scale=scale)
    if dtype not in FLOATS:
        raise TypeError(f"dtype is {dtype}; supported are float32, float16 and bfloat16")
    check_device(q=q, scale=scale)
    check_size(q=q)
    check_shape("scale", scale, plain.scale_shape(q, columns))
    if q.dtype == torch.float8_e4m3fn and not has_float8(q.device):
        fell_back("dequantize")
        return plain.dequantize(q, scale, dtype, columns)
    x = torch.empty(q.shape, dtype=dtype, device=q.device)
    if q.numel():
        rows = as_rows(q, -1)
        (m, n), block = rows.shape, _line(q)
        across = triton.cdiv(n, block)
        scales = 1 if columns == TENSOR else scale.shape[-1]
        jit.DEQUANTIZE.launch(
            row_grid(m * across, block), {"M": m, "N": n}, x, rows, scale.contiguous(),
            m * across, n, across, *rows.stride(), 0 if columns == TENSOR else scales,
            COLUMNS=columns if scales > 1 else 0, BLOCK_N=block,
        )  # fmt: skip
    return x


def _outputs(x: torch.Tensor, dtype: torch.dtype, columns: int) -> Quantized:
    q = torch.empty(x.shape, dtype=dtype, device=x.device)
    return q, torch.empty(plain.scale_shape(x, columns), dtype=torch.float32, device=x.device)


@_quantize.register_fake
def _(x, other, prologue, dtype, columns, eps):
    return _outputs(x, dtype, columns)


@_dequantize.register_fake
def _(q, scale, dtype, columns):
    return torch.empty(q.shape, dtype=dtype, device=q.device)


# ---- what it promises


def _plain_quantize(x: torch.Tensor, dtype: torch.dtype = torch.int8, group: str | int = "row") -> Quantized:
    return plain.quantize(plain.prologue(x, None, "none", 0.0), dtype, _columns(group, x.shape[-1]))


def _plain_silu_mul_quantize(
    gate: torch.Tensor, up: torch.Tensor, dtype: torch.dtype = torch.int8, group: str | int = "row"
) -> Quantized:
    return plain.quantize(plain.prologue(gate, up, "silu_mul", 0.0), dtype, _columns(group, gate.shape[-1]))


def _plain_rms_norm_quantize(
    x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-6, dtype: torch.dtype = torch.int8
) -> Quantized:
    return plain.quantize(plain.prologue(x, weight, "rms_norm", eps), dtype, max(1, x.shape[-1]))


def _plain_dequantize(
    q: torch.Tensor, scale: torch.Tensor, dtype: torch.dtype = torch.bfloat16, group: str | int = "row"
) -> torch.Tensor:
    return plain.dequantize(q, scale, dtype, _columns(group, q.shape[-1]))


def _inputs(name: str, sizes: Mapping[str, Any], dtype: str, device: str, seed: int) -> Inputs:
    draw = Draw(dtype, device, seed)
    m, n = sizes["M"], sizes["N"]
    group, made = sizes.get("group", "row"), draw.normal(m, n)
    if name == "dequantize":
        shape = plain.scale_shape(made, _columns(group, n))
        return Inputs(
            (made, draw.normal(*shape, dtype=torch.float32), getattr(torch, sizes.get("to", "float32")), group)
        )
    to = getattr(torch, sizes.get("to", "int8"))
    if name == "rms_norm_quantize":
        return Inputs((made, 1 + draw.normal(n) / 4), {"dtype": to})
    return Inputs((made, draw.normal(m, n), to, group) if name == "silu_mul_quantize" else (made, to, group))


def _cost(name: str, sizes: Mapping[str, Any], dtype: str) -> Cost:
    count, size = sizes["M"] * sizes["N"], getattr(torch, dtype).itemsize
    if name == "dequantize":
        return Cost(count, count * getattr(torch, sizes.get("to", "float32")).itemsize, count)
    read = count * size * (2 if name == "silu_mul_quantize" else 1)
    return Cost(read, count, {"quantize": 4, "silu_mul_quantize": 9, "rms_norm_quantize": 8}[name] * count)


def _edges(*groups: str | int) -> tuple[Mapping[str, Any], ...]:
    blocks = tuple({"M": 3, "N": n, "group": 128} for n in (1, 127, 128, 129, 257, 1025) if 128 in groups)
    whole = tuple({"M": m, "N": n, "group": "tensor"} for m, n in ((1, 1), (67, 16), (3, 1025)) if "tensor" in groups)
    rows = ({"M": 67, "N": 16}, *({"M": 2, "N": n} for n in (1, 2, 127, 1023, 1025)))
    return (*rows, *blocks, *whole, {"M": 2, "N": jit.ONE_BLOCK + 1}, {"M": 0, "N": 8}, {"M": 8, "N": 0})


def _shapes(**features: Any) -> Mapping[str, tuple[Mapping[str, Any], ...]]:
    """Representative sizes; the last of each bucket is float8 or has the further features."""
    return {
        "decode": ({"M": 128, "N": 65536}, {"M": 8, "N": 4096}, {"M": 256, "N": 14336, **features}),
        "prefill": ({"M": 16384, "N": 4096}, {"M": 8192, "N": 14336, **features}),
        "other": ({"M": 65536, "N": 512},),
    }


_TOLERANCE = 2e-3  # the same bits but where float32 and float64 see another side of a tie: then one step of one value


def _spec(
    name: str, function: Any, reference: Any, edges: Any, functions: tuple[Any, ...], **features: Any
) -> KernelSpec:
    dtypes = ("int8", "float8_e4m3fn") if name == "dequantize" else ("float32", "float16", "bfloat16")
    return KernelSpec(
        name=name,
        function=function,
        reference=reference,
        fallback=reference,
        inputs=partial(_inputs, name),
        buckets=jit.BUCKETS,
        shapes=_shapes(**features),
        edges=edges,
        dtypes=dtypes,
        tolerance=dict.fromkeys(dtypes, _TOLERANCE),
        cost=partial(_cost, name),
        triton_functions=functions,
    )


_FLOAT8 = {"to": "float8_e4m3fn"}
_KERNELS, _FUSED = (jit.GROUPS, jit.LARGEST, jit.SCALED), (jit.GROUPS,)  # what is too long to fuse is `quantize`'s
SPECS = (
    _spec("quantize", quantize, _plain_quantize, _edges(128, "tensor"), _KERNELS, **_FLOAT8, group=128),
    _spec("silu_mul_quantize", silu_mul_quantize, _plain_silu_mul_quantize, _edges(128), _FUSED, **_FLOAT8, group=128),
    _spec("rms_norm_quantize", rms_norm_quantize, _plain_rms_norm_quantize, _edges(), _FUSED, **_FLOAT8),
    _spec(
        "dequantize", dequantize, _plain_dequantize, _edges(128, "tensor"), (jit.DEQUANTIZE,), to="bfloat16", group=128
    ),
)
