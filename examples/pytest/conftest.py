"""Where the tests run: on the GPU, or on tprof's stub driver, which compiles for real and launches nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import torch

from tprof.testing.stub import stub_driver

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def device() -> Iterator[str]:
    """Name of the torch device to put tensors on."""
    if torch.cuda.is_available():
        yield "cuda"
    else:
        with stub_driver():
            yield "cpu"
