"""What every kernel must do, by its `KernelSpec`; what only one does is in the file of its family."""

from __future__ import annotations

import inspect

import pytest
import torch
from support.kernel_check import DEVICE, as_double, as_tuple, call, cases, check, close
from torch.utils._python_dispatch import TorchDispatchMode
from tprof_kernels import KERNELS
from tprof_kernels.tuned import Tuned, decisions, forced

EVERY = [pytest.param(spec, id=spec.name) for spec in KERNELS.values()]
CASES = [
    pytest.param(spec, *case.values, id=f"{spec.name}-{case.id}", marks=case.marks)
    for spec in KERNELS.values()
    for case in cases(spec)
]
CANDIDATES = [
    pytest.param(spec, tuned, config, id=f"{tuned.name}-{i}")
    for spec in KERNELS.values()
    for tuned in spec.triton_functions
    if isinstance(tuned, Tuned)
    for i, config in enumerate(tuned.candidates)
]


@pytest.mark.parametrize(("spec", "sizes", "dtype", "layout", "seed"), CASES)
def test_result_and_gradients(spec, sizes, dtype, layout, seed):
    check(spec, sizes, dtype, layout, seed)


@pytest.mark.parametrize(("spec", "tuned", "config"), CANDIDATES)
def test_every_candidate_is_right(spec, tuned, config):
    before = _forced(tuned)
    with forced(config, tuned):
        for sizes in spec.edges:
            check(spec, sizes, spec.dtypes[-1])
            if _forced(tuned) > before + 1:
                return
    assert _forced(tuned) > before, "no edge launches it"


@pytest.mark.parametrize("spec", EVERY)
def test_operators_are_registered_right(spec):
    with _Seen() as seen:
        call(spec, spec.edges[0], spec.dtypes[0])
    assert seen.calls, "no operator of tprof_kernels was called"
    for operator, (args, kwargs) in seen.calls.items():
        again = [_fresh(arg, "backward" not in str(operator) and bool(spec.gradients)) for arg in args]
        torch.library.opcheck(operator, tuple(again), kwargs)


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")  # by torch 2.11's own import
@pytest.mark.parametrize("spec", EVERY)
def test_it_compiles_whole(spec):
    inputs = spec.inputs(spec.edges[0], spec.dtypes[0], DEVICE, 0)
    torch.compiler.reset()
    compiled = torch.compile(spec.function, backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(*inputs.args, **inputs.kwargs), spec.function(*inputs.args, **inputs.kwargs))


@pytest.mark.parametrize("spec", EVERY)
@pytest.mark.parametrize("of", ["fallback", "library"])
def test_torch_alternatives_agree_with_the_reference(spec, of):
    if getattr(spec, of) is None:
        pytest.skip(f"{spec.name} has no {of}")
    for dtype in spec.dtypes:
        inputs = spec.inputs(spec.edges[0], dtype, DEVICE, 0)
        got = getattr(spec, of)(*inputs.args, **inputs.kwargs)
        want = spec.reference(*map(as_double, inputs.args), **{k: as_double(v) for k, v in inputs.kwargs.items()})
        for ours, exact in zip(as_tuple(got), as_tuple(want), strict=True):
            close(ours, exact, spec.tolerance[dtype])


@pytest.mark.parametrize("spec", EVERY)
def test_it_declares_what_it_promises(spec):
    names = set(inspect.signature(spec.function).parameters)
    assert set(spec.gradients) <= names
    assert set(spec.tolerance) == set(spec.dtypes)
    assert set(spec.shapes) == {bucket.name for bucket in spec.buckets.buckets} | {"other"}
    for tuned in spec.triton_functions:
        assert not isinstance(tuned, Tuned) or spec.buckets.covers(tuned.name)
    for bucket, shapes in spec.shapes.items():
        for sizes in shapes:
            assert spec.buckets.find(sizes) == (None if bucket == "other" else bucket)
            cost = spec.cost(sizes, spec.dtypes[0])
            assert min(cost.bytes_read, cost.bytes_written) > 0


class _Seen(TorchDispatchMode):
    """Keeps a call of each of our operators."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if getattr(func, "namespace", "") == "tprof_kernels":
            self.calls.setdefault(func, (args, kwargs or {}))
        return func(*args, **kwargs or {})


def _fresh(value, grad):
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().clone().requires_grad_(grad and value.is_floating_point())


def _forced(tuned) -> int:
    return sum(n for (name, _, choice), n in decisions.items() if (name, choice) == (tuned.name, "forced"))
