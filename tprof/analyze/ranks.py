"""Percentiles by nearest rank: always a value that was measured, never one between two."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np


def percentile(ordered: np.ndarray, percent: int) -> int | None:
    """The smallest value that at least `percent` of all do not exceed (nearest rank), None of nothing.

    Args:
        ordered: ascending values, shape (n,).
        percent: 1 to 100.
    """
    return int(ordered[-(-percent * len(ordered) // 100) - 1]) if len(ordered) else None
