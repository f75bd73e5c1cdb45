"""Logarithmic axes of time: a tick per decade, with its unit."""

from __future__ import annotations

from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNITS = ("ns", "us", "ms", "s")


def decades(values_ns: Iterable[int]) -> dict[str, Any]:
    """Settings of an axis on which some times lie, ns; ticks are `100 us`, `1 ms`, `10 ms`.

    Args:
        values_ns: greater than zero.
    """
    known = list(values_ns) or [1]
    low, high = floor(log10(min(known))), max(ceil(log10(max(known))), floor(log10(min(known))) + 1)
    ticks = range(low, high + 1)
    room = 0.03 * (high - low)
    return {
        "type": "log", "tickvals": [10**k for k in ticks], "ticktext": [_decade(k) for k in ticks],
        "range": [log10(min(known)) - room - 0.1, log10(max(known)) + room + 0.1],
    }  # fmt: skip


def _decade(power: int) -> str:
    unit = min(power // 3, len(_UNITS) - 1)
    return f"{10 ** (power - 3 * unit):,} {_UNITS[unit]}"
