"""Judges a kernel by its `KernelSpec`; import only where torch and triton are installed.

`check(spec, sizes, dtype, layout, seed)` is one call and its gradients, against the reference in float64.
"""

from __future__ import annotations

import contextlib
import inspect
import math
import warnings

import pytest
import torch
from support.record_kernels import forget
from tprof_kernels import KERNELS
from tprof_kernels.tuned import INTERPRETED, Tuned

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LAYOUTS = ("plain", "strided", "transposed", "expanded")
# The largest error of an element, relative to the largest value, in tolerances: norms hide one wrong element. Or one
# step of the dtype: values near the middle of two are rounded either way.
WORST = 32
GRADIENT = 4  # tolerances that a gradient may have: it sees the forward's rounding and its own


def cases(spec):
    """(sizes, dtype, layout, seed) so that every pair of size and dtype, size and layout, dtype and layout occurs.

    One of each size is `small`, for slow tools. On a GPU the representative shapes are added, in one dtype.
    """
    columns = max(len(spec.dtypes), len(LAYOUTS))
    for i, size in enumerate(spec.edges):
        for j in range(columns):
            case = size, spec.dtypes[j % len(spec.dtypes)], LAYOUTS[(i + j) % len(LAYOUTS)], i % 3
            yield pytest.param(*case, id=_name(*case), marks=[pytest.mark.small] if j == i % columns else [])
    large = [size for group in spec.shapes.values() for size in group if DEVICE == "cuda"]
    for size in large:
        case = size, "bfloat16" if "bfloat16" in spec.dtypes else spec.dtypes[0], "plain", 0
        yield pytest.param(*case, id=_name(*case))


def _name(size, *rest):
    return "-".join([*(f"{name}={value}" for name, value in size.items()), *map(str, rest)])


def check(spec, sizes, dtype, layout="plain", seed=0, *, gradients=True, tolerance=None):
    """One call, and its gradients where it has any, with poisoned outputs and the inputs laid out as told."""
    inputs = spec.inputs(sizes, dtype, DEVICE, seed)
    args = [lay_out(arg, layout) for arg in inputs.args]
    try:
        compare(spec, args, dict(inputs.kwargs), tolerance or spec.tolerance[dtype], gradients=gradients)
    except torch.OutOfMemoryError:
        pytest.skip("the reference in float64 does not fit the GPU's memory")


def call(spec, sizes, dtype, gradient=torch.ones_like):
    """Run it, and its backward where it has one, for this gradient of each output; give the outputs."""
    inputs = spec.inputs(sizes, dtype, DEVICE, 0)
    bound = inspect.signature(spec.function).bind(*inputs.args, **inputs.kwargs)
    names = [name for name in spec.gradients if _differentiable(bound.arguments.get(name))]
    bound = _leaves(bound, names, lambda t: t.detach())
    outputs = _tuple(spec.function(*bound.args, **bound.kwargs))
    if wanted := [output for output in outputs if output.requires_grad]:
        leaves = [bound.arguments[name] for name in names]
        torch.autograd.grad(wanted, leaves, [gradient(output) for output in wanted])
    return outputs


def compare(spec, args, kwargs, tolerance, *, gradients=True):
    """The function against the reference on the same values."""
    bound = inspect.signature(spec.function).bind(*args, **kwargs)
    names = [name for name in spec.gradients if gradients and _differentiable(bound.arguments.get(name))]
    mine, theirs = _leaves(bound, names, lambda t: t.detach()), _leaves(bound, names, as_double)
    with poisoned():
        got = _tuple(spec.function(*mine.args, **mine.kwargs))
    want = _tuple(spec.reference(*theirs.args, **theirs.kwargs))
    assert len(got) == len(want)
    for ours, exact in zip(got, want, strict=True):
        close(ours, exact, tolerance)
    if names and any(ours.requires_grad for ours in got):
        found, exact = _gradients(got, mine, names, got[0].dtype), _gradients(want, theirs, names, got[0].dtype)
        for i, name in enumerate(names):
            close(
                found[i],
                exact[i],
                GRADIENT * tolerance,
                f"gradient of {name}",
                lambda i=i: _torch(spec, mine, names)[i],
            )


def _torch(spec, bound, names):
    """Gradients that the fallback gives."""
    bound = _leaves(bound, names, lambda t: t.detach())
    outputs = _tuple(spec.fallback(*bound.args, **bound.kwargs))
    return _gradients(outputs, bound, names, outputs[0].dtype)


def _gradients(outputs, bound, names, dtype):
    """Gradients of the named arguments, for random gradients of the outputs that this dtype can hold."""
    outputs = [output for output in outputs if output.requires_grad]
    random = [torch.randn(o.shape, generator=torch.Generator().manual_seed(i)) for i, o in enumerate(outputs)]
    with poisoned():
        given = [grad.to(dtype).to(output) for grad, output in zip(random, outputs, strict=True)]
        return torch.autograd.grad(outputs, [bound.arguments[name] for name in names], given)


def close(got, want, tolerance, what="output", peer=None):
    """Same shape, same NaNs and infinities, and a relative error of norms within the tolerance.

    `peer()` is torch's result in the same dtype: where its rounding exceeds the tolerance, twice its error is allowed.
    """
    got, want = got.detach(), want.detach()
    assert got.shape == want.shape, what
    rounded, step = want.to(got.dtype).double(), torch.finfo(got.dtype).eps if got.is_floating_point() else 0.0
    want = torch.where(rounded.isinf(), rounded, want.double())
    slack = 4 if INTERPRETED and got.dtype == torch.bfloat16 else 1  # the interpreter truncates where a GPU rounds
    got, finite, tolerance = got.double(), want.isfinite(), slack * tolerance
    assert torch.equal(got.isnan(), want.isnan()), f"{what}: {got.isnan().sum()} NaNs, not {want.isnan().sum()}"
    assert torch.equal(got[~finite].nan_to_num(), want[~finite].nan_to_num()), f"{what}: infinities elsewhere"
    got, want = got[finite], want[finite]
    floor = tolerance * math.sqrt(want.numel())  # of results that cancel to nothing
    scale, worst, top = max(want.norm(), floor), _largest(got - want), max(_largest(want), tolerance)
    if (got - want).norm() > tolerance * scale and peer:
        tolerance = 2 * slack * (peer().double()[finite] - want).norm() / scale
    error = (got - want).norm()
    assert error <= tolerance * scale, f"{what}: relative error {error / scale:.2e}, allowed {tolerance:.0e}"
    assert worst <= max(WORST * tolerance, step) * top, f"{what}: an element is off by {worst / top:.2e} of the largest"


def _largest(values):
    return values.abs().max() if values.numel() else 0.0


def lay_out(value, layout):
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
def poisoned():
    """`torch.empty` gives NaN: what a kernel forgets to write is seen."""
    torch.set_deterministic_debug_mode("warn")  # fills uninitialized memory
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*deterministic")
            yield
    finally:
        torch.set_deterministic_debug_mode("default")


def as_double(value):
    """Floating-point tensors in float64, the rest as it is."""
    return value.detach().double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def _leaves(bound, names, change):
    """The bound arguments with their tensors changed; those named are asked for gradients."""
    made = bound.signature.bind(*bound.args, **bound.kwargs)
    for name, value in bound.arguments.items():
        if isinstance(value, torch.Tensor):
            made.arguments[name] = change(value).requires_grad_(name in names)
    return made


def forget_all():
    """Drop what this process compiled and tuned: another stub driver follows, or an empty cache."""
    for function in (function for spec in KERNELS.values() for function in spec.triton_functions):
        if isinstance(function, Tuned):
            function.autotuner.cache.clear()
        forget(getattr(function, "jit", function))


def _differentiable(value):
    return isinstance(value, torch.Tensor) and value.is_floating_point() and value.element_size() > 1


def _tuple(value):
    return value if isinstance(value, tuple) else (value,)
