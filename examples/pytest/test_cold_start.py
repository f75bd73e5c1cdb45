"""What tests can say about cold start, with the pytest plugin that comes with tprof: `pytest examples/pytest`."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl


@triton.jit(do_not_specialize=["n"])
def double(x, out, n, BLOCK: tl.constexpr):
    """Each program doubles one tile; `n` is no reason for a variant of its own."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)


def serve(n: int, device: str) -> None:
    """One request of length n."""
    x, out = torch.ones(n, device=device), torch.empty(n, device=device)
    double[(triton.cdiv(n, 128),)](x, out, n, BLOCK=128)


@pytest.fixture
def warm(device: str) -> str:
    """A service that has served one length: what is spent here is on no test's budget."""
    serve(512, device)
    return device


@pytest.mark.tprof_budget(compile_s=0, autotune_s=0)
def test_a_warm_service_compiles_nothing(warm):
    for n in (512, 777, 1, 4096):
        serve(n, warm)


def test_one_variant_serves_all_lengths(tprof_trace, device):
    double.device_caches.clear()
    serve(1000, device)
    serve(1001, device)
    assert len(tprof_trace.read().frame("compiles")) == 1
