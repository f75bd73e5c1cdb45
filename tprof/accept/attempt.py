"""Calling a function that is under judgement, and may fail in any way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import torch
from triton.errors import TritonError

if TYPE_CHECKING:
    from collections.abc import Callable

MEMORY: Final = "out of memory"  # no fault of the kernel's: the reference in float64 needs more than it
_FAILURES: Final = (
    ArithmeticError, AssertionError, AttributeError, LookupError, NameError, OSError, RuntimeError, TypeError,
    ValueError, TritonError,
)  # fmt: skip


def attempt(action: Callable[[], object]) -> str | None:
    """What went wrong in one line, `MEMORY`, or None."""
    try:
        action()
    except torch.OutOfMemoryError:
        return MEMORY
    except _FAILURES as error:
        lines = str(error).strip().splitlines() or [""]
        return (lines[0] if isinstance(error, AssertionError) else f"{type(error).__name__}: {lines[0]}")[:300]
    return None
