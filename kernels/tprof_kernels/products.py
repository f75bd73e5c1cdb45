"""The matrix product of tiles that all kernels use."""

from __future__ import annotations

import triton
import triton.language as tl

from tprof_kernels.tuned import INTERPRETED


@triton.jit
def dot(a, b, acc, PRECISION: tl.constexpr, WIDEN: tl.constexpr = INTERPRETED):
    """The sum acc + a b in float32.

    Tensor cores round float32 values to TF32 (`tf32`), or multiply their parts (`tf32x3`: 21 bits of 24). Exact
    products (`ieee`) run without tensor cores, and take registers and long to compile.
    """
    if WIDEN:  # Triton's interpreter (up to 3.9) multiplies the bit patterns of bfloat16
        a, b = a.to(tl.float32), b.to(tl.float32)
    if a.dtype.is_fp8():  # Hopper sums float8 products in 14 bits: at most 128 of them before the float32 sum
        return tl.dot(a, b, acc, max_num_imprecise_acc=min(128, a.shape[1]))
    return tl.dot(a, b, acc, input_precision=PRECISION)
