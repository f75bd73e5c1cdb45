"""The protocol of a kernel that tprof can judge: what it computes, on which inputs, and how exact it must be.

`tprof.accept` reads it, and `tprof_kernels` declares one per kernel. Any function may have one:
`spec = KernelSpec(name="softmax", function=softmax, reference=torch.softmax, ...)`. Standard library only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tprof.buckets import BucketSet


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call must do at least, counted by hand.

    Attributes:
        bytes_read: every input once.
        bytes_written: every output once.
        operations: floating-point operations; a multiply-add counts two.
    """

    bytes_read: int
    bytes_written: int
    operations: int


@dataclass(frozen=True, slots=True)
class Inputs:
    """Arguments of one call."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """A kernel and what it promises.

    Attributes:
        name: of the kernel.
        function: the public function.
        reference: the same signature, plainly written in torch; exact enough in float64 to judge the others by.
        fallback: the same signature and dtypes, in torch operators: what serves when the kernel cannot.
        inputs: `(sizes, dtype name, device, seed) -> Inputs`, drawn at random.
        buckets: the shapes that are served hot.
        shapes: per bucket of `buckets` a few representative sizes, and under `other` some outside all.
        edges: sizes around every block edge: 1, block - 1, block, block + 1, primes, empty; and every feature.
        dtypes: names of the input types that are supported (`float32`, `float16`, `bfloat16`, `float8_e4m3fn`, `int8`).
        tolerance: per dtype the relative error ||out - ref|| / ||ref|| that is allowed against the reference.
        cost: `(sizes, dtype name) -> Cost`.
        library: the library's own call of the same signature, where there is one; else None.
        triton_functions: the `Tuned` or `@triton.jit` functions that it launches.
        gradients: names of the arguments that it can be differentiated by.
    """

    name: str
    function: Callable[..., Any]
    reference: Callable[..., Any]
    fallback: Callable[..., Any]
    inputs: Callable[[Mapping[str, Any], str, str, int], Inputs]
    buckets: BucketSet
    shapes: Mapping[str, tuple[Mapping[str, Any], ...]]
    edges: tuple[Mapping[str, Any], ...]
    dtypes: tuple[str, ...]
    tolerance: Mapping[str, float]
    cost: Callable[[Mapping[str, Any], str], Cost]
    library: Callable[..., Any] | None = None
    triton_functions: tuple[Any, ...] = ()
    gradients: tuple[str, ...] = ()
