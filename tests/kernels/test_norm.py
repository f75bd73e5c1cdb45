"""LayerNorm and RMSNorm: hard statistics, the residual's sum, other weights' dtypes, and what they refuse."""

from __future__ import annotations

import math

import pytest
import torch
from support.kernel_check import DEVICE, close, compare
from tprof_kernels import KERNELS
from tprof_kernels.norm import layer_norm, rms_norm
from tprof_kernels.norm_jit import ONE_BLOCK

LENGTHS = pytest.mark.parametrize("n", [300, ONE_BLOCK + 3], ids=["block", "long"])
BOTH = pytest.mark.parametrize("name", ["layer_norm", "rms_norm"])


@LENGTHS
def test_a_large_mean_does_not_cancel_the_variance(n):
    x = 3_000 + torch.randn(2, n, device=DEVICE)  # the squares are 9e6, the variance is 1
    weight, bias = torch.ones(n, device=DEVICE), torch.zeros(n, device=DEVICE)
    compare(KERNELS["layer_norm"], [x, weight, bias], {}, 1e-3, gradients=False)


@LENGTHS
def test_a_constant_row_gives_the_bias_and_a_row_of_zeros_zeros(n):
    weight, bias = torch.ones(n, device=DEVICE), torch.randn(n, device=DEVICE)
    constant = layer_norm(torch.full((1, n), 3.0, device=DEVICE), weight, bias)
    torch.testing.assert_close(constant[0], bias, atol=1e-3, rtol=0)  # a rounded mean, times 1 / sqrt(eps)
    assert not rms_norm(torch.zeros(1, n, device=DEVICE), weight).any()


@LENGTHS
@BOTH
def test_a_nan_or_infinity_spoils_its_row_only(n, name):
    x = torch.ones(3, n, device=DEVICE)
    x[0, 3], x[1, n - 1] = math.nan, math.inf
    y = KERNELS[name].function(x, torch.ones(n, device=DEVICE))
    assert y.isnan().any(1).tolist() == [True, True, False]


@LENGTHS
def test_the_sum_with_the_residual_is_rounded_once_and_normalized_as_rounded(n):
    x, residual = (torch.randn(2, n, device=DEVICE).half() for _ in range(2))
    weight = torch.ones(n, device=DEVICE).half()
    y, total = rms_norm(x, weight, residual=residual)
    assert torch.equal(total, x + residual)
    torch.testing.assert_close(y, rms_norm(total, weight))


@BOTH
def test_only_the_sum_or_only_the_output_may_be_used(name):
    x, residual, weight = (torch.randn(*shape, device=DEVICE).requires_grad_() for shape in ((4, 33), (4, 33), (33,)))
    y, total = KERNELS[name].function(x, weight, residual=residual)
    of_sum = torch.autograd.grad(total.sum(), [x, residual, weight], retain_graph=True)
    assert [float(grad.abs().max()) for grad in of_sum] == [1, 1, 0]
    of_output = torch.autograd.grad(y.sum(), [x, weight], retain_graph=True)
    of_both = torch.autograd.grad((y.sum(), total.sum()), [x, weight])
    torch.testing.assert_close(of_both[0], of_output[0] + 1)
    torch.testing.assert_close(of_both[1], of_output[1])


@BOTH
def test_weights_may_be_wider_than_the_input(name):
    x = torch.randn(3, 40, device=DEVICE).half()
    weight = torch.randn(40, device=DEVICE)
    compare(KERNELS[name], [x, weight], {}, 1e-3)
    weight.requires_grad_()
    y = KERNELS[name].function(x, weight)
    assert y.dtype == torch.float16
    assert torch.autograd.grad(y.sum(), weight)[0].dtype == torch.float32


@LENGTHS
def test_long_low_precision_sums_are_float32(n):
    x = torch.ones(1, n, dtype=torch.float16, device=DEVICE) * 200  # squares overflow float16, their sum far more
    close(rms_norm(x, torch.ones(n, device=DEVICE).half()), torch.ones(1, n, dtype=torch.float64, device=DEVICE), 1e-3)


def test_gradients_are_the_same_bits_each_time():
    x, weight = torch.randn(70, 130, device=DEVICE), torch.randn(130, device=DEVICE, requires_grad=True)
    first, again = (torch.autograd.grad(rms_norm(x, weight).sum(), weight)[0] for _ in range(2))
    assert torch.equal(first, again)


def test_every_leading_dimension_is_a_row():
    x, weight = torch.randn(2, 3, 4, 20, device=DEVICE), torch.randn(20, device=DEVICE)
    compare(KERNELS["rms_norm"], [x.transpose(1, 2), weight], {}, 2e-6)
    compare(KERNELS["layer_norm"], [x[0, 0, 0], weight], {}, 2e-6)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"x": torch.ones(2, 4, dtype=torch.int32)}, TypeError, "x is torch.int32; supported are float32"),
        ({"weight": torch.ones(5)}, ValueError, r"weight has shape \(5,\), but \(4,\) follows"),
        ({"bias": torch.ones(1)}, ValueError, r"bias has shape \(1,\), but \(4,\) follows"),
        ({"residual": torch.ones(1, 4)}, ValueError, r"residual has shape \(1, 4\), but \(2, 4\) follows"),
        ({"residual": torch.ones(2, 4).half()}, TypeError, "residual is torch.float16; supported are float32"),
    ],
    ids=["dtype", "weight", "bias", "residual", "residual-dtype"],
)
def test_refusals_say_what_is_wrong(change, error, match):
    given = {"x": torch.ones(2, 4), "weight": torch.ones(4), **change}
    with pytest.raises(error, match=match):
        layer_norm(**{name: tensor.to(DEVICE) for name, tensor in given.items()})
