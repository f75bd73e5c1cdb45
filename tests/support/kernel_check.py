"""Judges a kernel by its `KernelSpec`; import only where torch and triton are installed.

`check(spec, sizes, dtype, layout, seed)` is one call and its gradients, against the reference in float64.
"""

from __future__ import annotations

import contextlib
import inspect
from unittest import mock

import pytest
import torch
from support.record_kernels import forget
from tprof_kernels import KERNELS
from tprof_kernels.tuned import Tuned

from tprof.accept import compare as accept
from tprof.accept.compare import as_double, as_tuple, close, compare, differentiable, lay_out, leaves, poisoned

__all__ = ["DEVICE", "as_double", "as_tuple", "call", "cases", "check", "close", "compare", "forget_all", "poisoned"]

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def cases(spec):
    """(sizes, dtype, layout, seed) so that every pair of size and dtype, size and layout, dtype and layout occurs.

    One of each size is `small`, for slow tools. On a GPU the representative shapes are added, in one dtype.
    """
    columns = max(len(spec.dtypes), len(accept.LAYOUTS))
    for i, case in enumerate(accept.cases(spec)):
        small = i % columns == i // columns % columns
        yield pytest.param(*case, id=_name(*case), marks=[pytest.mark.small] if small else [])
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
    names = [name for name in spec.gradients if differentiable(bound.arguments.get(name))]
    bound = leaves(bound, names, lambda t: t.detach())
    outputs = as_tuple(spec.function(*bound.args, **bound.kwargs))
    if wanted := [output for output in outputs if output.requires_grad]:
        sources = [bound.arguments[name] for name in names]
        torch.autograd.grad(wanted, sources, [gradient(output) for output in wanted])
    return outputs


@contextlib.contextmanager
def read_in_place(*tensors):
    """Kernels must be handed these very tensors, or views of them: no copy."""
    with mock.patch.object(Tuned, "launch", autospec=True, side_effect=Tuned.launch) as launch:
        yield
    handed = [arg for one in launch.call_args_list for arg in one.args if isinstance(arg, torch.Tensor)]
    assert {tensor.data_ptr() for tensor in tensors} <= {arg.data_ptr() for arg in handed}


def blank(draw, *shape, scale=1.0, dtype=None):
    """In place of `Draw.normal` where nothing is computed: large inputs without values cost nothing."""
    return torch.empty(shape, dtype=dtype or draw.dtype)


def forget_all():
    """Drop what this process compiled and tuned: another stub driver follows, or an empty cache."""
    for function in (function for spec in KERNELS.values() for function in spec.triton_functions):
        if isinstance(function, Tuned):
            function.autotuner.cache.clear()
        forget(getattr(function, "jit", function))
