"""Waiting for what another thread or process does."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def until(true: Callable[[], object], seconds: float = 60) -> None:
    """Look a hundred times a second; what does not happen in time fails the test."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"it did not happen in {seconds} s"
        time.sleep(0.01)
