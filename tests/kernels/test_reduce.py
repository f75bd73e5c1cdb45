"""Reductions: cancelling sums, NaN and infinity, long rows split between programs, ties, and what is refused."""

from __future__ import annotations

import math

import pytest
import torch
from support.kernel_check import DEVICE, close, compare
from tprof_kernels import KERNELS
from tprof_kernels.reduce import KINDS, PART, PROGRAMS, part_length, reduce

SPEC = KERNELS["reduce"]
LENGTHS = pytest.mark.parametrize("n", [37, 3 * PART + 1], ids=["whole", "split"])


@LENGTHS
@pytest.mark.parametrize("how", KINDS)
def test_nan_and_infinity_stay_in_their_row(how, n):
    x = torch.zeros(4, n, device=DEVICE)
    x[0, n - 1], x[1, 2], x[2, :] = math.nan, math.inf, -math.inf
    compare(SPEC, [x, how], {}, 1e-6, gradients=False)


@LENGTHS
def test_the_variance_of_large_values_does_not_cancel(n):
    x = 1e4 + torch.arange(n, device=DEVICE).remainder(5).float().repeat(2, 1)  # E[x^2] - E[x]^2 would lose all digits
    compare(SPEC, [x, "var"], {}, 1e-5, gradients=False)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_long_low_precision_row_is_summed_in_float32(dtype):
    x = torch.full((1, 20_000), 2**-5, dtype=dtype, device=DEVICE)  # in bfloat16 the sum would stop at 8
    close(reduce(x, "sum"), torch.tensor([625.0], device=DEVICE), 4e-3)
    close(reduce(x, "mean"), torch.tensor([2**-5], device=DEVICE), 4e-3)


@pytest.mark.parametrize("dim", [0, 1, 2, -3])
@pytest.mark.parametrize("how", KINDS)
def test_any_dimension_of_any_tensor(how, dim):
    compare(SPEC, [torch.randn(3, 5, 7, device=DEVICE), how, dim], {}, 2e-6)


@pytest.mark.filterwarnings("ignore:var():UserWarning")  # torch's own, where nothing is left to divide by
@pytest.mark.parametrize("correction", [0, 1, 2])
def test_the_correction_of_a_variance(correction):
    compare(SPEC, [torch.randn(3, 2, device=DEVICE), "var"], {"correction": correction}, 2e-6, gradients=False)


def test_tied_maxima_share_the_gradient():
    x = torch.tensor([[1.0, 3.0, 3.0, 2.0]], device=DEVICE, requires_grad=True)
    reduce(x, "max").sum().backward()
    assert x.grad.tolist() == [[0.0, 0.5, 0.5, 0.0]]


def test_few_rows_are_split_and_many_are_not():
    assert part_length(1, 10**6, down=False) < 10**6
    assert part_length(PROGRAMS, 10**6, down=False) >= 10**6
    assert part_length(1, PART, down=False) >= PART
    assert part_length(64 * PROGRAMS, 10**6, down=True) >= 10**6
    assert part_length(3, 0, down=False) == 1


def test_the_same_call_gives_the_same_bits():
    x = torch.randn(2, 3 * PART, device=DEVICE)
    assert torch.equal(reduce(x, "sum"), reduce(x, "sum"))


def test_refusals_say_what_is_wrong():
    with pytest.raises(ValueError, match="how is 'median'; known are sum, mean, max, var"):
        reduce(torch.ones(2, device=DEVICE), "median")
    with pytest.raises(TypeError, match=r"x is torch.int64; supported are float32"):
        reduce(torch.ones(2, dtype=torch.int64, device=DEVICE), "sum")
    with pytest.raises(ValueError, match=r"x of shape \(2, 0\) has no maximum over its empty dimension -1"):
        reduce(torch.ones(2, 0, device=DEVICE), "max")
    with pytest.raises(IndexError, match="Dimension out of range"):
        reduce(torch.ones(2, device=DEVICE), "sum", 1)
