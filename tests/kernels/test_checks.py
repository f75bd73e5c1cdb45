"""What is refused says which argument is wrong and what to do."""

from __future__ import annotations

import pytest
import torch
from tprof_kernels import checks


def test_a_tensor_beyond_32_bit_offsets_is_refused():
    checks.check_size(x=torch.empty(2**31 - 1, device="meta"), y=None)
    with pytest.raises(ValueError, match=r"x of shape \(2, 1073741825\) spans 2,147,483,650 elements.*x.chunk\(2\)"):
        checks.check_size(x=torch.empty(2, 2**30 + 1, device="meta"))


def test_reach_counts_what_steps_span_not_what_a_tensor_holds():
    assert checks.reach(torch.empty(4, 8)[:, ::2]) == 3 * 8 + 3 * 2 + 1
    assert checks.reach(torch.empty(1).expand(2**20, 2**20)) == 1
    assert checks.reach(torch.empty(0, 5)) == 0


def test_tensors_on_several_devices_are_named():
    with pytest.raises(ValueError, match="x on cpu, bias on meta; move them"):
        checks.check_device(x=torch.empty(1), residual=None, bias=torch.empty(1, device="meta"))


def test_without_the_interpreter_a_cpu_tensor_is_refused(monkeypatch):
    monkeypatch.setattr(checks, "INTERPRETED", False)
    with pytest.raises(
        ValueError, match=r"x is on cpu, but Triton kernels need an NVIDIA GPU; move it with x.cuda\(\)"
    ):
        checks.check_device(x=torch.empty(1))


def test_dtypes_and_shapes_are_named():
    with pytest.raises(TypeError, match=r"weight is torch.int8; supported are float32, float16, bfloat16"):
        checks.check_dtype(checks.FLOATS, x=torch.empty(1), weight=torch.empty(1, dtype=torch.int8))
    with pytest.raises(ValueError, match=r"weight has shape \(3,\), but \(4,\) follows"):
        checks.check_shape("weight", torch.empty(3), (4,))
