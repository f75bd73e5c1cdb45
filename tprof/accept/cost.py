"""Part 4: calls over the bucket set under tprof's recorder. Each call is a request whose name says what it was.

Without a GPU the stub driver stands for one: specialization, cache keys, every compile stage and the disk cache are
real; loads, launches and what a candidate takes are not.
"""

from __future__ import annotations

import contextlib
import json
from typing import TYPE_CHECKING, Any, Final

import torch
import triton
from torch.overrides import TorchFunctionMode

from tprof import request, trace
from tprof.accept.attempt import MEMORY, attempt
from tprof.accept.numbers import label, usual
from tprof.testing.stub import stub_driver

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tprof.buckets import Bucket
    from tprof.kernelspec import KernelSpec

Row = dict[str, Any]
PROBES: Final = 6  # shapes beside a hot one, none special: neither 1 nor a multiple of 16


def cost(specs: list[KernelSpec], device: str, run: Path) -> list[Row]:
    """Call every representative shape, then shapes beside the first; give the calls that failed."""
    rows: list[Row] = []
    with contextlib.nullcontext() if device == "cuda" else stub_driver(cost_ns=lambda *_: 1e9), trace(run, nvtx=False):
        _nothing[1,](torch.empty(1, device=device))
        for spec in specs:
            rows += [_called(spec, device, kind, bucket, sizes) for kind, bucket, sizes in calls(spec)]
    # a shape beside a hot one may be none that the kernel takes
    return [row for row in rows if row["error"] not in {None, MEMORY} and row["part"] == "shape"]


def calls(spec: KernelSpec) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(shape or probe, bucket, sizes): all that is called, in order."""
    for bucket, shapes in spec.shapes.items():
        yield from (("shape", bucket, sizes) for sizes in shapes)
    first = spec.buckets.buckets[0]
    yield from (("probe", first.name, sizes) for sizes in beside(spec, first, PROBES))


def beside(spec: KernelSpec, bucket: Bucket, count: int) -> Iterator[Mapping[str, Any]]:
    """Sizes of a bucket beside its first shape: what its bounds leave free is a little smaller, and odd."""
    base = spec.shapes[bucket.name][0]
    free = [name for name, (low, high) in bucket.bounds.items() if low != high and isinstance(base.get(name), int)]
    for step in range(count):
        sizes = {**base, **{name: base[name] - 2 * step - 1 for name in free}}
        if free and bucket.holds(sizes) and min(sizes[name] for name in free) > 1:
            yield sizes


def _called(spec: KernelSpec, device: str, kind: str, bucket: str, sizes: Mapping[str, Any]) -> Row:
    """Call it once, as a request."""

    def action() -> None:
        with _Unwritten() if device == "cpu" else contextlib.nullcontext():
            inputs = spec.inputs(sizes, usual(spec), device, 0)
        with request(json.dumps([spec.name, kind, bucket])):
            spec.function(*inputs.args, **inputs.kwargs)
            if device == "cuda":
                torch.cuda.synchronize()

    return {"kernel": spec.name, "part": kind, "case": label(sizes, usual(spec)), "error": attempt(action)}


@triton.jit  # type: ignore[untyped-decorator]
def _nothing(out) -> None:  # type: ignore[no-untyped-def] # noqa: ANN001 - Triton's arguments have no types
    """Its launch pays for what a process pays once: the driver, the compiler's own start."""


class _Unwritten(TorchFunctionMode):  # type: ignore[misc]  # torch is optional: `Any` to mypy
    """Random floating-point inputs are left as memory is: nothing is computed from them, and they cost nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name, kwargs = getattr(func, "__name__", ""), dict(kwargs or {})
        if name in {"randn", "rand"}:
            kwargs.pop("generator", None)
            return torch.empty(*args, **kwargs)
        if name in {"mul_", "add_", "div_", "normal_", "uniform_"} and args[0].is_floating_point():
            return args[0]
        if name == "to" and args[0].is_floating_point() and isinstance(args[-1], torch.dtype):
            return torch.empty_like(args[0], dtype=args[-1])
        return func(*args, **kwargs)
