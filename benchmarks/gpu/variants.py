"""What limits two kernels of docs/kernels.md: softmax of rows that no block holds, and fused elementwise.

    python benchmarks/gpu/variants.py

Needs an NVIDIA GPU; half a minute. Medians as `benchmarks/kernels.py` takes them, us.
"""

from __future__ import annotations

import torch
from tprof_kernels.elementwise import fused_elementwise
from tprof_kernels.softmax import softmax_long, softmax_rows

from tprof.accept.measure import measure

ROWS, COLUMNS = 1024, 32000
WALKS = ((2048, 4), (4096, 4), (4096, 8), (8192, 8), (8192, 16), (16384, 16), (16384, 32), (32768, 16), (32768, 32))


def main() -> None:
    """Print a line per variant."""
    softmax()
    fused()


def softmax() -> None:
    """Two walks in blocks of several sizes, and all of a row in one block."""
    x = torch.randn(ROWS, COLUMNS, device="cuda", dtype=torch.bfloat16)
    out, copy, step = torch.empty_like(x), torch.empty_like(x), x.stride()
    show("copy", lambda: copy.copy_(x))
    for block, warps in WALKS:
        show(f"two walks, blocks of {block}, {warps} warps",
             lambda b=block, w=warps: softmax_long[ROWS,](out, x, COLUMNS, *step, 0, BLOCK=b, num_warps=w))  # fmt: skip
    for warps in (8, 16, 32):
        whole = {"BLOCK_N": 32768, "TILE": 32768, "num_warps": warps}
        show(f"one block, {warps} warps",
             lambda w=whole: softmax_rows[ROWS,](out, x, ROWS, COLUMNS, *step, 0, **w))  # fmt: skip


def fused() -> None:
    """Bias, activation and residual, with and without dropout, beside an addition of as many bytes."""
    x, residual, out = (torch.randn(16384, 4096, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    bias = torch.randn(4096, device="cuda", dtype=torch.bfloat16)
    show("torch.add", lambda: torch.add(x, residual, out=out))
    for activation, dropout in (("relu", 0.0), ("gelu_tanh", 0.0), ("gelu", 0.0), ("gelu_tanh", 0.1)):
        how = {"activation": activation, "dropout": dropout, "seed": 3}
        show(f"{activation}, dropout {dropout}", lambda h=how: fused_elementwise(x, bias, residual, **h))


def show(name: str, call) -> None:
    """Its median."""
    print(f"{name:40}{measure(call)['median_us']:9.1f}")


if __name__ == "__main__":
    main()
