"""The elementwise fusion: dropout's mask, extreme values of activations and their slopes, and what it refuses."""

from __future__ import annotations

import math

import pytest
import torch
from support.kernel_check import DEVICE, compare
from tprof_kernels import KERNELS
from tprof_kernels.activations import ACTIVATIONS
from tprof_kernels.elementwise import fused_elementwise, keep_mask, philox
from tprof_kernels.elementwise_jit import CANDIDATES
from tprof_kernels.tuned import forced

SPEC = KERNELS["fused_elementwise"]


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [  # of Random123's kat_vectors
        ([0] * 4, (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ([2**32 - 1] * 4, (2**32 - 1,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
    ids=["zeros", "ones", "pi"],
)
def test_philox_gives_the_published_words(counter, key, words):
    assert tuple(int(word) for word in philox(tuple(torch.tensor(c) for c in counter), key)) == words


@pytest.mark.parametrize("config", CANDIDATES, ids=str)
@pytest.mark.parametrize("n", [1, 6, 1030])
def test_a_seed_gives_one_mask_for_every_config_and_layout(config, n):
    x = torch.ones(n, 9, device=DEVICE).T
    want = keep_mask(9, n, 0.3, 12345, DEVICE)
    with forced(config):
        assert torch.equal(fused_elementwise(x, dropout=0.3, seed=12345) != 0, want)
        assert torch.equal(fused_elementwise(x.contiguous(), dropout=0.3, seed=12345) != 0, want)
        assert torch.equal(fused_elementwise(x.reshape(3, 3, n), dropout=0.3, seed=12345).view(9, n) != 0, want)


def test_dropout_has_its_rate_keeps_the_mean_and_changes_with_the_seed():
    x = torch.ones(32, 1024, device=DEVICE)
    one, other = (fused_elementwise(x, dropout=0.25, seed=seed) for seed in (1, 2))
    assert set(one.unique().tolist()) == {0.0, float(torch.tensor(1 / 0.75))}
    assert float(one.mean()) == pytest.approx(1, abs=5 * math.sqrt(1 / 3 / x.numel()))
    assert float(((one != 0) == (other != 0)).float().mean()) == pytest.approx(0.625, abs=0.02)


def test_the_backward_drops_what_the_forward_dropped():
    x = torch.ones(33, 70, device=DEVICE, requires_grad=True)
    y = fused_elementwise(x, dropout=0.5, seed=7, scale=3.0)
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(grad, y.detach())  # x is 1, so both are the mask times 3 / (1 - 0.5)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_extreme_values_give_finite_outputs_and_slopes(activation):
    ends = torch.tensor([0.0, 1e-30, 3.0, 9.9, 10.1, 60.0, 1e4, 1e12], device=DEVICE)
    x = torch.cat([ends, -ends]).unsqueeze(0).requires_grad_()
    y = fused_elementwise(x, activation=activation)
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert y.isfinite().all()
    assert grad.isfinite().all()
    compare(SPEC, [x.detach()], {"activation": activation}, 2e-6)


def test_a_nan_stays_and_spoils_nothing_else():
    x = torch.ones(2, 5, device=DEVICE)
    x[1, 2] = math.nan
    for activation in ACTIVATIONS:
        assert fused_elementwise(x, activation=activation).isnan().nonzero().tolist() == [[1, 2]]


def test_all_parts_stand_in_the_order_that_is_told():
    x, residual = torch.full((1, 4), -1.0, device=DEVICE), torch.full((1, 4), 10.0, device=DEVICE)
    bias = torch.tensor([0.0, 1.0, 2.0, 3.0], device=DEVICE)
    y = fused_elementwise(x, bias, residual, "relu", scale=2.0)
    assert y.tolist() == [[10, 10, 12, 14]]  # 10 + 2 * relu(-1 + bias)


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"x": torch.ones(2, 4).long()}, TypeError, "x is torch.int64; supported are float32"),
        ({"bias": torch.ones(5)}, ValueError, r"bias has shape \(5,\), but \(4,\) follows"),
        ({"residual": torch.ones(4)}, ValueError, r"residual has shape \(4,\), but \(2, 4\) follows"),
        ({"activation": "tanh"}, ValueError, "activation is 'tanh'; known are none, relu"),
        ({"dropout": 1.0}, ValueError, "dropout is 1.0; it must be a probability"),
        ({"seed": 2**31}, ValueError, "seed is 2147483648; it must lie in 0"),
    ],
    ids=["dtype", "bias", "residual", "activation", "dropout", "seed"],
)
def test_refusals_say_what_is_wrong(change, error, match):
    given = {"x": torch.ones(2, 4), **change}
    moved = {name: value.to(DEVICE) if isinstance(value, torch.Tensor) else value for name, value in given.items()}
    with pytest.raises(error, match=match):
        fused_elementwise(**moved)
