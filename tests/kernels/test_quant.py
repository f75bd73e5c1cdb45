"""Quantization: the bits of the plain operators, ties, zeros, overflow, float8, and what it refuses."""

from __future__ import annotations

import math

import pytest
import torch
from support.kernel_check import DEVICE, poisoned
from tprof_kernels import KERNELS, quant
from tprof_kernels.quant import dequantize, quantize, rms_norm_quantize, silu_mul_quantize
from tprof_kernels.quant_jit import ONE_BLOCK
from tprof_kernels.tuned import INTERPRETED, decisions

GROUPS = pytest.mark.parametrize("group", ["tensor", "row", 128, 100])
FLOAT8 = torch.float8_e4m3fn
LONG = ONE_BLOCK + 5


@pytest.mark.parametrize(("group", "n"), [("row", LONG), ("tensor", LONG), ("row", 1000), (128, 1000), (100, 99)])
def test_int8_is_what_plain_operators_give_bit_for_bit(group, n):
    x = torch.randn(2, n, device=DEVICE).half() * 50
    with poisoned():
        q, scale = quantize(x, torch.int8, group)
    want, scales = KERNELS["quantize"].fallback(x, torch.int8, group)
    assert torch.equal(q, want)
    assert torch.equal(scale, scales)
    steps = quant.plain.spread(scale, q, quant._columns(group, n))
    assert torch.equal(dequantize(q, scale, torch.float32, group), q * steps)


@GROUPS
def test_what_is_read_back_is_off_by_at_most_half_a_step(group):
    x = torch.randn(4, 300, device=DEVICE)
    q, scale = quantize(x, torch.int8, group)
    steps = quant.plain.spread(scale, q, quant._columns(group, 300)).expand_as(x)
    assert ((x - dequantize(q, scale, torch.float32, group)).abs() <= steps * 0.50001).all()
    assert int(q.abs().max()) == 127


def test_ties_go_to_even():
    x = torch.tensor([[127.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 126.5]], device=DEVICE)  # the scale is 1
    assert quantize(x)[0].tolist() == [[127, 0, 2, 2, 0, -2, -2, 126]]


@GROUPS
@pytest.mark.parametrize("dtype", [torch.int8, FLOAT8])
def test_zeros_and_tiny_values_give_no_nan(group, dtype):
    x = torch.zeros(2, 200, device=DEVICE)
    x[1, 3] = 1e-42  # subnormal
    q, scale = quantize(x, dtype, group)
    assert (scale == 2.0**-126).all()
    assert not q[0].float().any()
    assert not dequantize(q, scale, torch.float32, group).isnan().any()


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize(("group", "spoiled"), [("tensor", 400), ("row", 200), (128, 128)])
def test_an_overflow_makes_its_group_nan_and_no_other(bad, group, spoiled):
    x = torch.ones(2, 200, device=DEVICE)
    x[1, 3] = bad
    q, scale = quantize(x, torch.int8, group)
    back = dequantize(q, scale, torch.float32, group)
    assert int(back.isnan().sum()) == spoiled
    assert back[1, 3].isnan()
    assert ((back[~back.isnan()] - 1).abs() < 1e-6).all()


def test_a_fused_neighbour_gives_what_two_steps_in_float32_give():
    gate, up, weight = torch.randn(5, 300, device=DEVICE), torch.randn(5, 300, device=DEVICE), torch.randn(300)
    weight = weight.to(DEVICE)
    _nearly(silu_mul_quantize(gate, up, group=128), quantize(torch.nn.functional.silu(gate) * up, group=128))
    normed = torch.nn.functional.rms_norm(gate, (300,), weight, 1e-6)
    _nearly(rms_norm_quantize(gate, weight), quantize(normed))


def test_a_neighbour_of_a_row_too_long_to_fuse_is_counted_and_right():
    x, weight = torch.randn(2, ONE_BLOCK + 1, device=DEVICE), torch.ones(ONE_BLOCK + 1, device=DEVICE)
    before = decisions["rms_norm_quantize", None, "fallback"]
    _nearly(rms_norm_quantize(x, weight), KERNELS["rms_norm_quantize"].fallback(x, weight))
    assert decisions["rms_norm_quantize", None, "fallback"] == before + 1


def test_float8_keeps_what_it_can_hold_and_saturates():
    held = torch.arange(126, dtype=torch.uint8).view(FLOAT8).float()  # all positive values but the largest
    x = torch.cat([held, -held, torch.tensor([448.0])]).unsqueeze(0).to(DEVICE)
    q, scale = quantize(x, FLOAT8, "row")
    assert scale.tolist() == [[1.0]]
    assert torch.equal(dequantize(q, scale, torch.float32), x)


def test_float8_rounds_to_the_nearest():
    x = torch.randn(8, 512, device=DEVICE)
    (q, scale), (want, scales) = quantize(x, FLOAT8, 128), KERNELS["quantize"].fallback(x, FLOAT8, 128)
    assert torch.equal(scale, scales)
    same = float((q.view(torch.uint8) == want.view(torch.uint8)).float().mean())
    assert same > (0.95 if INTERPRETED else 0.99999)  # Triton's interpreter loses the carry of a rounded mantissa


def test_a_gpu_without_float8_is_served_by_plain_operators(monkeypatch):
    monkeypatch.setattr(quant, "has_float8", lambda _device: False)
    x = torch.randn(2, 40, device=DEVICE)
    before = decisions["quantize", None, "fallback"], decisions["dequantize", None, "fallback"]
    q, scale = quantize(x, FLOAT8)
    assert q.dtype == FLOAT8
    assert ((dequantize(q, scale, torch.float32) - x).abs() <= x.abs() / 16 + scale).all()
    assert (decisions["quantize", None, "fallback"], decisions["dequantize", None, "fallback"]) == (
        before[0] + 1,
        before[1] + 1,
    )


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda x: quantize(x.long()), TypeError, "x is torch.int64; supported are float32"),
        (lambda x: quantize(x, torch.int16), TypeError, "dtype is torch.int16; supported are int8 and float8_e4m3fn"),
        (lambda x: quantize(x, group="column"), ValueError, "group is 'column'; it must be 'tensor', 'row', or"),
        (lambda x: silu_mul_quantize(x, x, group="tensor"), ValueError, "known only after the product"),
        (lambda x: silu_mul_quantize(x, x[:1]), ValueError, r"up has shape \(1, 8\), but \(2, 8\) follows"),
        (lambda x: rms_norm_quantize(x, x), ValueError, r"weight has shape \(2, 8\), but \(8,\) follows"),
        (lambda x: dequantize(x, x[:, :1]), TypeError, "q is torch.float32; supported are int8, float8_e4m3fn"),
        (lambda x: dequantize(quantize(x)[0], x), ValueError, r"scale has shape \(2, 8\), but \(2, 1\) follows"),
        (lambda x: dequantize(*quantize(x), torch.int8), TypeError, "dtype is torch.int8; supported are float32"),
        (
            lambda x: quantize(x[:1, :1].expand(1, ONE_BLOCK + 2), group=ONE_BLOCK + 1),
            ValueError,
            "a block has at most 32,768 columns",
        ),
    ],
)
def test_refusals_say_what_is_wrong(call, error, match):
    with pytest.raises(error, match=match):
        call(torch.ones(2, 8, device=DEVICE))


def _nearly(got, want):
    """The same scales, and values of which a few are one step off: sums of float32 in another order."""
    torch.testing.assert_close(got[1], want[1], rtol=1e-5, atol=0)
    off = (got[0].int() - want[0].int()).abs()
    assert int(off.max()) <= 1
    assert float(off.float().mean()) < 1e-3
