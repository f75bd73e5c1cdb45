"""Parts 1, 2, 6 and 7: numbers against the reference, under stress, and of the fallback; what there is to maintain."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import torch

from tprof.accept.attempt import MEMORY, attempt
from tprof.accept.compare import as_double, as_tuple, cases, close_all, compare, differentiable, lay_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tprof.kernelspec import Inputs, KernelSpec

Row = dict[str, Any]
ORDER: Final = 4  # tolerances that the fallback may have: torch sums in an order of its own, on a CPU in another
LARGEST: Final = 3  # edges that are put under stress, those that read most


def numbers(spec: KernelSpec, device: str) -> list[Row]:
    """One row per case: kernel, part, case, and its error (None: it is right). Cases without memory are left out."""
    found = [*_correctness(spec, device), *_stability(spec, device), *_fallback(spec, device)]
    return [{"kernel": spec.name, **row} for row in found if row["error"] != MEMORY]


def label(sizes: Mapping[str, Any], *rest: object) -> str:
    """A case in words: `M=3 N=129, float16, strided`."""
    return ", ".join([" ".join(f"{name}={value}" for name, value in sizes.items()), *map(str, rest)])


def _row(part: str, case: str, error: str | None) -> Row:
    return {"part": part, "case": case, "error": error}


def _correctness(spec: KernelSpec, device: str) -> Iterator[Row]:
    large = [size for group in spec.shapes.values() for size in group if device == "cuda"]
    every = [*cases(spec), *((size, usual(spec), "plain", 0) for size in large)]
    for sizes, dtype, layout, seed in every:

        def action() -> None:
            inputs = spec.inputs(sizes, dtype, device, seed)  # noqa: B023 - called at once
            args = [lay_out(arg, layout) for arg in inputs.args]  # noqa: B023 - as above
            compare(spec, args, inputs.kwargs, spec.tolerance[dtype])  # noqa: B023 - as above

        yield _row("correctness", label(sizes, dtype, layout), attempt(action))


def usual(spec: KernelSpec) -> str:
    """The dtype in which models are served, else the first."""
    return "bfloat16" if "bfloat16" in spec.dtypes else spec.dtypes[0]


# ---- stress


def _set(value: float | None) -> Callable[[torch.Tensor], torch.Tensor]:
    """The first element becomes a value; None: the largest finite one of the dtype."""

    def change(x: torch.Tensor) -> torch.Tensor:
        changed = x.clone(memory_format=torch.contiguous_format)
        changed.view(-1)[0] = torch.finfo(x.dtype).max if value is None else value
        return changed

    return change


def _infinite_row(x: torch.Tensor) -> torch.Tensor:
    changed = x.clone(memory_format=torch.contiguous_format)
    changed[0] = -torch.inf
    return changed


STRESS: Final[dict[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "values x 100": lambda x: x * 100,
    "values + 100, so that long sums grow": lambda x: x + 100,
    "one sign, so that rounding adds up": lambda x: x.abs(),
    "values x 1e-6": lambda x: x * 1e-6,
    "one largest finite value": _set(None),
    "one NaN": _set(torch.nan),
    "a row of -inf": _infinite_row,
}


def _stability(spec: KernelSpec, device: str) -> Iterator[Row]:
    """The first tensor under stress, on the largest edges; what torch itself fails is not held against the kernel."""
    for sizes, dtype in itertools.product(_largest(spec), spec.dtypes):
        made: list[Inputs] = []
        attempt(lambda: made.append(spec.inputs(sizes, dtype, device, 0)))  # noqa: B023 - called at once
        for inputs in made:  # none where the size is refused, which correctness tells
            for name, args in _stressed(inputs.args):
                error = _compared(spec, args, inputs.kwargs, dtype)
                if error and _compared(replace(spec, function=spec.fallback, gradients=()), args, inputs.kwargs, dtype):
                    error = None
                yield _row("stability", label(sizes, dtype, name), error)


def _stressed(args: Sequence[Any]) -> Iterator[tuple[str, list[Any]]]:
    """The arguments with their first floating-point tensor changed; a scalar in a tensor is none."""
    at = next((i for i, arg in enumerate(args) if differentiable(arg) and arg.dim() and arg.numel()), None)
    for name, change in STRESS.items() if at is not None else ():
        yield name, [change(arg) if i == at else arg for i, arg in enumerate(args)]


def _compared(spec: KernelSpec, args: list[Any], kwargs: Mapping[str, Any], dtype: str) -> str | None:
    return attempt(lambda: compare(spec, args, kwargs, spec.tolerance[dtype], gradients=False))


def _largest(spec: KernelSpec) -> list[Mapping[str, Any]]:
    """The edges that read most; a spec may not be able to count every edge."""
    read: list[tuple[int, int]] = []
    for i, sizes in enumerate(spec.edges):
        attempt(lambda: read.append((spec.cost(sizes, spec.dtypes[0]).bytes_read, i)))  # noqa: B023 - called at once
    return [spec.edges[i] for n, i in sorted(read)[-LARGEST:] if n]


def _fallback(spec: KernelSpec, device: str) -> Iterator[Row]:
    for i, sizes in enumerate(spec.edges):
        dtype = spec.dtypes[i % len(spec.dtypes)]

        def action() -> None:
            inputs = spec.inputs(sizes, dtype, device, 0)  # noqa: B023 - called at once
            exact = {name: as_double(value) for name, value in inputs.kwargs.items()}
            want = as_tuple(spec.reference(*map(as_double, inputs.args), **exact))
            got = as_tuple(spec.fallback(*inputs.args, **inputs.kwargs))
            close_all(got, want, ORDER * spec.tolerance[dtype])  # noqa: B023 - as above

        yield _row("fallback", label(sizes, dtype), attempt(action))


# ---- maintenance


def maintenance(spec: KernelSpec) -> Row:
    """What someone has to keep working."""
    jitted = [getattr(function, "jit", getattr(function, "fn", function)) for function in spec.triton_functions]
    sources = [textwrap.dedent(inspect.getsource(getattr(jit, "fn", jit))) for jit in jitted]
    branches = [node for text in sources for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.If, ast.IfExp))]
    return {
        "kernel": spec.name,
        "functions": len(jitted),
        "lines": sum(len(text.splitlines()) for text in sources),
        "candidates": sum(len(_candidates(function)) for function in spec.triton_functions),
        "branches": len(branches),
        "buckets": len(spec.buckets.buckets),
        "edges": len(spec.edges),
        "dtypes": len(spec.dtypes),
    }


def _candidates(function: Any) -> Any:
    """Configs that an autotuner, or a `Tuned` of tprof_kernels, may time."""
    return getattr(function, "candidates", getattr(function, "configs", ()))
