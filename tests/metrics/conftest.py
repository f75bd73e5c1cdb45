"""Fixtures of the metrics' tests: the stub driver, and kernels that are cold."""

from __future__ import annotations

import pytest
from support.skips import ABSENT


@pytest.fixture
def kernels(monkeypatch, tmp_path):
    if ABSENT:
        pytest.skip(f"{ABSENT} not installed: nothing to measure")
    from support import on_stub, record_kernels

    with on_stub.cold_stub(monkeypatch, tmp_path / "cache"):
        yield record_kernels


@pytest.fixture
def add(kernels):
    """A launch of `add` with n elements."""
    import torch

    x, o = torch.ones(1024), torch.empty(1024)
    return lambda n: kernels.add[(8,)](x, x, o, n, B=128)


@pytest.fixture
def pick(kernels):
    """A launch of `pick`, tuned for each n."""
    import torch

    x, o, tuner = torch.ones(1024), torch.empty(1024), kernels.tuned((128, 0, 4), (256, 0, 4))
    return lambda n: tuner[lambda meta: (1024 // meta["B"],)](x, o, n)
