"""A kernel's numbers against the reference in float64: values, gradients, NaNs and infinities, on any strides."""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tprof.kernelspec import KernelSpec

INTERPRETED: Final = os.environ.get("TRITON_INTERPRET") == "1"
LAYOUTS: Final = ("plain", "strided", "transposed", "expanded")
# The largest error of an element, relative to the largest value, in tolerances: norms hide one wrong element. Or one
# step of the dtype: values near the middle of two are rounded either way.
WORST: Final = 32
GRADIENT: Final = 4  # tolerances that a gradient may have: it sees the forward's rounding and its own


class MismatchError(AssertionError):
    """Numbers differ by more than is allowed."""


def cases(spec: KernelSpec) -> Iterator[tuple[Mapping[str, Any], str, str, int]]:
    """(sizes, dtype, layout, seed) so that every pair of size and dtype, size and layout, dtype and layout occurs."""
    columns = max(len(spec.dtypes), len(LAYOUTS))
    for i, size in enumerate(spec.edges):
        for j in range(columns):
            yield size, spec.dtypes[j % len(spec.dtypes)], LAYOUTS[(i + j) % len(LAYOUTS)], i % 3


def compare(
    spec: KernelSpec, args: Sequence[Any], kwargs: Mapping[str, Any], tolerance: float, *, gradients: bool = True
) -> None:
    """The function against the reference on the same values, its outputs poisoned first.

    Raises:
        MismatchError: a result, or a gradient, is not within the tolerance.
    """
    bound = inspect.signature(spec.function).bind(*args, **kwargs)
    names = [name for name in spec.gradients if gradients and differentiable(bound.arguments.get(name))]
    mine, theirs = leaves(bound, names, lambda t: t.detach()), leaves(bound, names, as_double)
    with poisoned():
        got = as_tuple(spec.function(*mine.args, **mine.kwargs))
    want = as_tuple(spec.reference(*theirs.args, **theirs.kwargs))
    close_all(got, want, tolerance)
    if not names or not any(ours.requires_grad for ours in got):
        return
    found, exact = _gradients(got, mine, names, got[0].dtype), _gradients(want, theirs, names, got[0].dtype)
    for i, name in enumerate(names):
        peer = partial(_torch, spec, mine, names, i)
        close(found[i], exact[i], GRADIENT * tolerance, f"gradient of {name}", peer)


def close_all(got: Sequence[Any], want: Sequence[Any], tolerance: float) -> None:
    """`close` of each output."""
    _demand(len(got) == len(want), f"{len(got)} outputs, not {len(want)}")
    for ours, exact in zip(got, want, strict=True):
        close(ours, exact, tolerance)


def close(
    got: torch.Tensor, want: torch.Tensor, tolerance: float, what: str = "output", peer: Callable[[], Any] | None = None
) -> None:
    """Same shape, same NaNs and infinities, and a relative error of norms within the tolerance.

    `peer()` is torch's result in the same dtype: where its rounding exceeds the tolerance, twice its error is allowed.

    Raises:
        MismatchError: it is not so.
    """
    got, want = got.detach(), want.detach()
    _demand(got.shape == want.shape, f"{what}: shape {tuple(got.shape)}, not {tuple(want.shape)}")
    rounded, step = want.to(got.dtype).double(), torch.finfo(got.dtype).eps if got.is_floating_point() else 0.0
    want = torch.where(rounded.isinf(), rounded, want.double())
    slack = 4 if INTERPRETED and got.dtype == torch.bfloat16 else 1  # the interpreter truncates where a GPU rounds
    got, finite, tolerance = got.double(), want.isfinite(), slack * tolerance
    _demand(torch.equal(got.isnan(), want.isnan()), f"{what}: {got.isnan().sum()} NaNs, not {want.isnan().sum()}")
    _demand(torch.equal(got[~finite].nan_to_num(), want[~finite].nan_to_num()), f"{what}: infinities elsewhere")
    got, want = got[finite], want[finite]
    if not want.numel():
        return
    floor = tolerance * math.sqrt(want.numel())  # of results that cancel to nothing
    scale, worst, top = max(want.norm(), floor), _largest(got - want), max(_largest(want), tolerance)
    if (got - want).norm() > tolerance * scale and peer:
        tolerance = 2 * slack * (peer().double()[finite] - want).norm() / scale
    error = (got - want).norm()
    _demand(error <= tolerance * scale, f"{what}: relative error {error / scale:.2e}, allowed {tolerance:.0e}")
    _demand(
        worst <= max(WORST * tolerance, step) * top, f"{what}: an element is off by {worst / top:.2e} of the largest"
    )


def lay_out(value: Any, layout: str) -> Any:
    """A floating-point tensor with other strides; `expanded` repeats its first entry along the first dimension."""
    if not isinstance(value, torch.Tensor) or not value.is_floating_point() or 0 in (value.dim(), value.numel()):
        return value
    if layout == "strided":
        wide = torch.empty(*value.shape[:-1], 2 * value.shape[-1], dtype=value.dtype, device=value.device)
        return wide[..., ::2].copy_(value)
    if layout == "transposed" and value.dim() > 1:
        return value.transpose(-1, -2).contiguous().transpose(-1, -2)
    return value[:1].expand(value.shape) if layout == "expanded" else value


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """`torch.empty` gives NaN: what a kernel forgets to write is seen."""
    torch.set_deterministic_debug_mode("warn")  # fills uninitialized memory
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*deterministic")
            yield
    finally:
        torch.set_deterministic_debug_mode("default")


def as_double(value: Any) -> Any:
    """Floating-point tensors in float64, the rest as it is."""
    return value.detach().double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def as_tuple(value: Any) -> tuple[Any, ...]:
    """Outputs of a function that gives one or several."""
    return value if isinstance(value, tuple) else (value,)


def differentiable(value: Any) -> bool:
    """Whether torch can give a gradient of it."""
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.element_size() > 1


def leaves(
    bound: inspect.BoundArguments, names: Sequence[str], change: Callable[[torch.Tensor], torch.Tensor]
) -> inspect.BoundArguments:
    """The bound arguments with their tensors changed; those named are asked for gradients."""
    made = bound.signature.bind(*bound.args, **bound.kwargs)
    for name, value in bound.arguments.items():
        if isinstance(value, torch.Tensor):
            made.arguments[name] = change(value).requires_grad_(name in names)
    return made


def _demand(condition: bool, message: str) -> None:  # noqa: FBT001 - it reads as an assertion
    if not condition:
        raise MismatchError(message)


def _largest(values: torch.Tensor) -> Any:
    return values.abs().max()


def _torch(spec: KernelSpec, bound: inspect.BoundArguments, names: Sequence[str], which: int) -> torch.Tensor:
    """One of the gradients that the fallback gives."""
    bound = leaves(bound, names, lambda t: t.detach())
    outputs = as_tuple(spec.fallback(*bound.args, **bound.kwargs))
    return _gradients(outputs, bound, names, outputs[0].dtype)[which]


def _gradients(
    outputs: Sequence[Any], bound: inspect.BoundArguments, names: Sequence[str], dtype: torch.dtype
) -> Sequence[torch.Tensor]:
    """Gradients of the named arguments, for random gradients of the outputs that this dtype can hold."""
    outputs = [output for output in outputs if output.requires_grad]
    random = [torch.randn(o.shape, generator=torch.Generator().manual_seed(i)) for i, o in enumerate(outputs)]
    with poisoned():
        given = [grad.to(dtype).to(output) for grad, output in zip(random, outputs, strict=True)]
        return torch.autograd.grad(outputs, [bound.arguments[name] for name in names], given)
