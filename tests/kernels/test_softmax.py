"""Softmax: extreme values, rows without a finite value, other dimensions, and what it refuses."""

from __future__ import annotations

import math

import pytest
import torch
from support.kernel_check import DEVICE, close, compare
from tprof_kernels import KERNELS
from tprof_kernels.softmax import ONE_BLOCK, softmax

SPEC = KERNELS["softmax"]
LENGTHS = pytest.mark.parametrize("n", [37, ONE_BLOCK + 3], ids=["block", "long"])


@LENGTHS
def test_extreme_values_neither_overflow_nor_lose_the_row(n):
    x = torch.zeros(4, n, device=DEVICE)
    x[0, 5], x[1, :], x[2, -1], x[3, 0] = 3e38, -3e38, -3e38, 88.0
    compare(SPEC, [x, -1], {}, 1e-6, gradients=False)


@LENGTHS
def test_a_row_of_minus_infinity_is_nan_and_one_finite_value_takes_all(n):
    x = torch.full((3, n), -math.inf, device=DEVICE)
    x[1, n - 1] = 2.0
    x[2, 0] = math.inf
    out = softmax(x)
    assert out[0].isnan().all()
    assert out[1].tolist() == [0.0] * (n - 1) + [1.0]
    assert out[2].isnan().all()
    assert torch.equal(out.isnan(), torch.softmax(x, -1).isnan())


@LENGTHS
def test_a_nan_spoils_its_row_only(n):
    x = torch.zeros(2, n, device=DEVICE)
    x[0, 3] = math.nan
    assert softmax(x).isnan().all(1).tolist() == [True, False]


def test_a_long_low_precision_row_is_summed_in_float32():
    x = torch.zeros(1, 70_000, dtype=torch.bfloat16, device=DEVICE)  # summed in bfloat16 the total would stop at 256
    close(softmax(x), torch.full_like(x, 1 / 70_000, dtype=torch.float64), 4e-3)


@pytest.mark.parametrize("dim", [0, 1, 2, -2])
def test_any_dimension_of_any_tensor(dim):
    compare(SPEC, [torch.randn(3, 5, 7, device=DEVICE), dim], {}, 1e-6)


def test_refusals_say_what_is_wrong():
    with pytest.raises(TypeError, match=r"x is torch.int32; supported are float32, float16, bfloat16"):
        softmax(torch.ones(2, 2, dtype=torch.int32, device=DEVICE))
    with pytest.raises(IndexError, match="Dimension out of range"):
        softmax(torch.ones(2, 2, device=DEVICE), 2)
