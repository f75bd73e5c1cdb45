"""Sum, mean, maximum and variance over one dimension: rows, columns, and rows so long that programs share one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

import torch
import triton

from tprof.kernelspec import Cost, Inputs, KernelSpec
from tprof_kernels.checks import FLOATS, check_device, check_dtype, check_size
from tprof_kernels.draw import Draw
from tprof_kernels.reduce_jit import BUCKETS, COLUMNS, ROWS, reduce_parts
from tprof_kernels.rows import as_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

KINDS: Final = ("sum", "mean", "max", "var")
PROGRAMS = 1024  # enough to fill a large GPU several times; fewer rows than this are split
PART = 4096  # values: a shorter part is not worth its second pass
BLOCK = 4096  # columns: a lane sums every BLOCK-th value of a longer row


def reduce(x: torch.Tensor, how: str, dim: int = -1, *, correction: int = 1) -> torch.Tensor:
    """Sum, mean, maximum or variance over a dimension, accumulated in float32.

    Partial sums have a fixed order for a shape and a config: the same call gives the same bits. The maximum of tied
    values has its gradient split evenly between them, as `torch.amax`.

    Args:
        x: of any shape; float32, float16 or bfloat16. Where one step reaches every row and one every column it is read
            in place, along rows or columns alike; else it is copied once.
        how: "sum", "mean", "max" or "var".
        dim: the dimension that disappears.
        correction: of "var": it divides by the number of values less this, 1 as in `torch.var`.

    Returns:
        A tensor of x's dtype without that dimension. No values give 0 as their sum and NaN as mean and variance.

    Raises:
        TypeError: x has another dtype.
        ValueError: `how` is another word; x is not on a GPU, spans more than 2^31 - 1 elements, or has no value to be
            the maximum.
        IndexError: x has no such dimension.
    """
    return torch.ops.tprof_kernels.reduce(x, how, dim, correction)


@torch.library.custom_op("tprof_kernels::reduce", mutates_args=())
def _reduce(x: torch.Tensor, how: str, dim: int, correction: int) -> torch.Tensor:
    if how not in KINDS:
        raise ValueError(f"how is {how!r}; known are {', '.join(KINDS)}")
    check_dtype(FLOATS, x=x)
    check_device(x=x)
    check_size(x=x)
    rows = as_rows(x, dim)
    m, n = rows.shape
    if how == "max" and n == 0 and m:
        raise ValueError(f"x of shape {tuple(x.shape)} has no maximum over its empty dimension {dim}")
    out = torch.empty(m, dtype=x.dtype, device=x.device)
    if m:
        _launch(rows, out, how, correction)
    return out.view(_without(x, dim))


def _launch(rows: torch.Tensor, out: torch.Tensor, how: str, correction: int) -> None:
    """One pass, and a second where programs share rows."""
    (m, n), down = rows.shape, rows.stride(1) != 1 and rows.stride(0) == 1
    length = part_length(m, n, down=down)
    count = triton.cdiv(n, length) if n else 1
    parts = torch.empty(2, count, m, dtype=torch.float32, device=out.device) if count > 1 else None
    args = out, parts, rows, m, n, *rows.stride(), length, correction
    if down:
        COLUMNS.launch(lambda meta: (triton.cdiv(m, meta["BLOCK_M"]), count), {"M": m, "N": n}, *args, HOW=how)
    else:
        block = min(BLOCK, triton.next_power_of_2(max(n, 1)))
        ROWS.launch(
            lambda meta: (triton.cdiv(m, max(1, meta["TILE"] // block)), count),
            {"M": m, "N": n}, *args, HOW=how, BLOCK_N=block,
        )  # fmt: skip
    if parts is not None:
        split = triton.next_power_of_2(count)
        block = max(1, 2048 // split)
        reduce_parts[(triton.cdiv(m, block),)](
            out, parts, m, n, length, count, correction, HOW=how, BLOCK_M=block, BLOCK_S=split
        )


def part_length(m: int, n: int, *, down: bool) -> int:
    """How many of a row's n values one program sees: all, unless m rows leave multiprocessors idle."""
    programs = triton.cdiv(m, 64) if down else m
    parts = max(1, min(PROGRAMS // programs, n // PART, PROGRAMS))
    return max(1, triton.cdiv(triton.cdiv(n, parts), 128) * 128)


def _without(x: torch.Tensor, dim: int) -> tuple[int, ...]:
    return tuple(size for i, size in enumerate(x.shape) if i != dim % max(1, x.dim()))


@_reduce.register_fake
def _(x: torch.Tensor, how: str, dim: int, correction: int) -> torch.Tensor:
    return x.new_empty(_without(x, dim))


def _setup(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    x, ctx.how, ctx.dim, ctx.correction = inputs
    ctx.shape = x.shape
    ctx.save_for_backward(*((x, output) if ctx.how == "max" else (x,) if ctx.how == "var" else ()))


def _backward(ctx: Any, dy: torch.Tensor) -> tuple[torch.Tensor, None, None, None]:
    """In torch operators: a view, or one pass that the compiler can fuse with its neighbours."""
    dy = dy.unsqueeze(ctx.dim)
    n = ctx.shape[ctx.dim] if ctx.shape else 1
    if ctx.how == "mean":
        dy = dy / n
    if ctx.how == "max":
        x, top = ctx.saved_tensors
        ties = (x == top.unsqueeze(ctx.dim)).to(dy.dtype)
        dy = dy * (ties / ties.sum(ctx.dim, keepdim=True))
    if ctx.how == "var":
        (x,) = ctx.saved_tensors
        mean = torch.ops.tprof_kernels.reduce(x.float(), "mean", ctx.dim, 0).unsqueeze(ctx.dim)
        dy = (dy * (x - mean) * (2 / max(0, n - ctx.correction) if n > ctx.correction else math.nan)).to(x.dtype)
    return dy.expand(ctx.shape), None, None, None


_reduce.register_autograd(_backward, setup_context=_setup)


# ---- what it promises


def _torch(x: torch.Tensor, how: str, dim: int = -1, *, correction: int = 1) -> torch.Tensor:
    if how == "var":
        return torch.var(x, dim, correction=correction)
    return {"sum": torch.sum, "mean": torch.mean, "max": torch.amax}[how](x, dim)


def _inputs(sizes: Mapping[str, Any], dtype: str, device: str, seed: int) -> Inputs:
    """M results of N values each; `dim` 0 for columns."""
    shape, dim = (sizes["M"], sizes["N"]), sizes.get("dim", -1)
    x = Draw(dtype, device, seed).normal(*(shape if dim == -1 else shape[::-1]))
    return Inputs((x, sizes["how"], dim))


def _cost(sizes: Mapping[str, Any], dtype: str) -> Cost:
    size = getattr(torch, dtype).itemsize
    count = sizes["M"] * sizes["N"]
    return Cost(size * count, size * sizes["M"], count * (6 if sizes["how"] == "var" else 1))


SPECS = (
    KernelSpec(
        name="reduce",
        function=reduce,
        reference=_torch,
        fallback=_torch,
        library=_torch,
        inputs=_inputs,
        buckets=BUCKETS,
        shapes={
            "short": ({"M": 262144, "N": 256, "how": "sum"}, {"M": 65536, "N": 1000, "how": "var"}),
            "medium": (
                {"M": 8192, "N": 8192, "how": "mean"},
                {"M": 4096, "N": 16384, "how": "max", "dim": 0},
                {"M": 8192, "N": 8192, "how": "var"},
            ),
            "long": ({"M": 16, "N": 4_000_000, "how": "sum"}, {"M": 512, "N": 131072, "how": "max", "dim": 0}),
            "other": ({"M": 2, "N": 20_000_000, "how": "mean"},),
        },
        edges=(
            *({"M": 3, "N": n, "how": how} for n, how in zip((1, 2, 127, 1025), KINDS, strict=True)),
            *({"M": 2, "N": n, "how": how} for n, how in zip((4095, 4096, 4097, 8193), KINDS, strict=True)),
            *({"M": 67, "N": n, "how": how, "dim": 0} for n, how in zip((31, 32, 33, 65), KINDS, strict=True)),
            *({"M": 5, "N": 12289, "how": how} for how in KINDS),  # three parts
            *({"M": 3, "N": 8193, "how": how, "dim": 0} for how in ("max", "var")),  # two parts
            {"M": 1031, "N": 7, "how": "mean"},
            {"M": 0, "N": 8, "how": "sum"},
            {"M": 8, "N": 0, "how": "sum"},
            {"M": 8, "N": 0, "how": "mean"},
        ),
        dtypes=("float32", "float16", "bfloat16"),
        tolerance={"float32": 1e-6, "float16": 1e-3, "bfloat16": 8e-3},
        cost=_cost,
        triton_functions=(ROWS, COLUMNS, reduce_parts),
        gradients=("x",),
    ),
)
