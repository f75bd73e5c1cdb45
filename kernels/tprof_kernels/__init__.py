"""Triton kernels for PyTorch whose cold start is bounded: few candidates, declared buckets, a conservative path.

Each module has the public functions of one family: `from tprof_kernels.softmax import softmax`. `KERNELS` has what
each promises, by name. Importing this package needs neither torch nor triton; the first look at `KERNELS` does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tprof.kernelspec import KernelSpec

    KERNELS: dict[str, KernelSpec]

MODULES = (  # each has `SPECS`
    "attention",
    "attention_paged",
    "elementwise",
    "matmul",
    "moe_spec",
    "norm",
    "quant",
    "reduce",
    "softmax",
)


def __getattr__(name: str) -> Any:
    if name != "KERNELS":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    modules = [import_module(f"{__name__}.{module}") for module in MODULES]
    globals()["KERNELS"] = {spec.name: spec for module in modules for spec in module.SPECS}
    return globals()["KERNELS"]
