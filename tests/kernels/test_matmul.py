"""The matrix product: long sums, operands in any order of memory, broadcast batches, and what it refuses."""

from __future__ import annotations

import math

import pytest
import torch
from support.kernel_check import DEVICE, close, compare, read_in_place
from tprof_kernels import KERNELS
from tprof_kernels.matmul import matmul
from tprof_kernels.matmul_jit import BUCKETS, CANDIDATES, DECODE, EXACT, LARGE, SINGLE, prune

SPEC = KERNELS["matmul"]


def ones(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype, device=DEVICE)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_a_long_sum_of_low_precision_values_is_kept_in_float32(dtype):
    out = matmul(ones(2, 4099, dtype=dtype), ones(4099, 3, dtype=dtype), out_dtype=torch.float32)
    assert out.tolist() == [[4099.0] * 3] * 2  # in bfloat16 the sum would stop at 256


@pytest.mark.parametrize("a_first", [True, False], ids=["rows", "columns"])
@pytest.mark.parametrize("b_first", [True, False], ids=["rows", "columns"])
def test_operands_in_either_order_of_memory_are_not_copied(a_first, b_first):
    a, b = torch.randn(33, 48, device=DEVICE), torch.randn(48, 65, device=DEVICE)
    a = a if a_first else a.T.contiguous().T
    b = b if b_first else b.T.contiguous().T
    with read_in_place(a, b):
        matmul(a, b)
    compare(SPEC, [a, b], {}, 2e-6)


def test_batches_are_broadcast_and_gradients_summed_back():
    a, b = torch.randn(2, 1, 5, 6, device=DEVICE), torch.randn(3, 6, 7, device=DEVICE)
    assert matmul(a, b).shape == (2, 3, 5, 7)
    compare(SPEC, [a, b], {}, 2e-6)


def test_the_epilogue_keeps_nan_and_infinity():
    a = torch.tensor([[math.nan], [math.inf], [-math.inf], [2.0]], device=DEVICE)
    for activation in ("none", "relu", "gelu", "silu"):
        kwargs = {"activation": activation, "precision": "ieee"}
        compare(SPEC, [a, ones(1, 3), ones(3), ones(4, 3)], kwargs, 2e-6, gradients=False)


def test_another_result_dtype_has_gradients_of_the_arguments_dtype():
    a, b = ones(4, 5, dtype=torch.bfloat16).requires_grad_(), ones(5, 6, dtype=torch.bfloat16)
    out = matmul(a, b, residual=ones(4, 6), out_dtype=torch.float32)
    out.sum().backward()
    assert (out.dtype, a.grad.dtype) == (torch.float32, torch.bfloat16)
    close(a.grad, torch.full((4, 5), 6.0, device=DEVICE), 1e-6)


def test_candidates_follow_rows_and_precision():
    half, single = ones(1, dtype=torch.bfloat16), ones(1)
    assert prune(CANDIDATES, {"a": half, "M": 64}, PRECISION="tf32x3") == list(DECODE)
    assert prune(CANDIDATES, {"a": half, "M": 65}, PRECISION="tf32x3") == list(LARGE)
    assert prune(CANDIDATES, {"a": single, "M": 65}, PRECISION="tf32x3") == list(SINGLE)
    assert prune(CANDIDATES, {"a": single, "M": 1}, PRECISION="ieee") == list(EXACT)


def test_the_number_of_tokens_is_in_the_bucket_and_in_no_key():
    assert [BUCKETS.find({"M": m}) for m in (1, 64, 65, 1024, 1025, 131_073)] == [
        "decode", "decode", "small", "small", "large", None,
    ]  # fmt: skip
    assert "M" not in SPEC.triton_functions[0].key
    assert "K" not in SPEC.triton_functions[0].key


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "says"),
    [
        ((ones(2, 3), ones(4, 5)), {}, ValueError, r"a of shape \(2, 3\) and b of shape \(4, 5\) are no"),
        ((ones(2, 3), ones(3)), {}, ValueError, r"b of shape \(3,\) are no"),
        ((ones(2, 3), ones(3, 4, dtype=torch.float16)), {}, TypeError, "b is torch.float16; supported are float32"),
        ((ones(2, 3).int(), ones(3, 4).int()), {}, TypeError, "a is torch.int32; supported are float32, float16"),
        ((ones(2, 3), ones(3, 4), ones(5)), {}, ValueError, r"bias has shape \(5,\), but \(4,\) follows"),
        ((ones(2, 3), ones(3, 4), None, ones(1, 4)), {}, ValueError, r"residual has shape \(1, 4\), but \(2, 4\)"),
        ((ones(2, 3), ones(3, 4)), {"activation": "tanh"}, ValueError, "activation is 'tanh'; known are none, relu"),
        ((ones(2, 3), ones(3, 4)), {"precision": "fp32"}, ValueError, "precision is 'fp32'; known are tf32x3"),
    ],
)
def test_refusals_say_what_is_wrong(args, kwargs, error, says):
    with pytest.raises(error, match=says):
        matmul(*args, **kwargs)
