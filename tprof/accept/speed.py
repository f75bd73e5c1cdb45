"""Parts 3 and 5, on a GPU: every representative shape against what else could serve it, and a small request warm."""

from __future__ import annotations

import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import torch

from tprof.accept.attempt import attempt
from tprof.accept.cost import beside
from tprof.accept.measure import Ceilings, contenders, measure
from tprof.accept.numbers import label, usual

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tprof.kernelspec import Inputs, KernelSpec

Row = dict[str, Any]
LAYERS: Final = 8  # of the small model: each is a matrix product and the kernel
WIDTH, TOKENS, TIMES = 2048, 512, 30


def speed(spec: KernelSpec, ceilings: Ceilings, device: str = "cuda") -> list[Row]:
    """One row per bucket and shape: median, spread and host time of each contender in us, and the ceiling.

    Beside its representative shapes each bucket has an odd one, where the kernel takes it: shapes change online.
    """
    shapes = [(bucket, sizes) for bucket, group in spec.shapes.items() for sizes in group]
    odd = [(bucket.name, sizes) for bucket in spec.buckets.buckets for sizes in beside(spec, bucket, 1)]
    rows = [_shape(spec, bucket, sizes, ceilings, device) for bucket, sizes in (*shapes, *odd)]
    return [row for i, row in enumerate(rows) if i < len(shapes) or "ours" in row["results"]]


def _shape(spec: KernelSpec, bucket: str, sizes: Mapping[str, Any], ceilings: Ceilings, device: str) -> Row:
    """The row of a shape; where it is refused, without results."""
    row: Row = {"kernel": spec.name, "bucket": bucket, "case": label(sizes, usual(spec)), "results": {}, "errors": {}}
    if error := attempt(lambda: _measured(row, spec, spec.inputs(sizes, usual(spec), device, 0), device)):
        row["errors"]["ours"] = error
    row["least_us"] = ceilings.of(spec.cost(sizes, usual(spec)))["least_us"] if row["results"] else None
    return row


def _measured(row: Row, spec: KernelSpec, inputs: Inputs, device: str) -> None:
    for name, function in contenders(spec).items():
        if found := _timed(row, name, partial(function, *inputs.args, **inputs.kwargs)):
            row["results"][name] = found
    for name in ("function", "fallback"):
        request = partial(request_us, getattr(spec, name), inputs, device)
        attempt(lambda: row.update({f"request_{name}_us": request()}))  # noqa: B023 - called at once


def _timed(row: Row, name: str, call: Callable[[], Any]) -> Row | None:
    found: Row = {}
    row["errors"][name] = attempt(lambda: found.update(measure(call)))
    torch.cuda.empty_cache()
    return found or None


def request_us(function: Callable[..., Any], inputs: Inputs, device: str) -> float:
    """Median wall time of a small model's request, us: 8 layers of a 512 x 2048 x 2048 product and the function."""
    x, weight = (torch.randn(rows, WIDTH, device=device, dtype=torch.bfloat16) for rows in (TOKENS, WIDTH))
    taken, wait = [], torch.get_device_module(device).synchronize
    for _ in range(TIMES):
        wait()
        start = time.perf_counter_ns()
        for _ in range(LAYERS):
            _ = x @ weight
            function(*inputs.args, **inputs.kwargs)
        wait()
        taken.append((time.perf_counter_ns() - start) / 1e3)
    return statistics.median(taken)
