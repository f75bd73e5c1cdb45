"""`--window A:B`: a part of a trace in units that people type."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from tprof.errors import UsageError

_TIME: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(ns|us|µs|ms|s|m|min|h)")
_INSTANT: Final = re.compile(r"-?\d+")
_NS: Final = {
    "ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "min": 60 * 10**9, "h": 3600 * 10**9,
}  # fmt: skip


def parse_window(text: str, extent: tuple[int, int]) -> tuple[int, int]:
    """`1.5s:3s` -> (start, end) in ns on the trace's clock; an open side is the trace's own.

    Args:
        text: as typed: a time with a unit counts from the first event of the trace; a bare integer is an instant of the
            trace's clock, as `start_ns` in the JSON is.
        extent: first and last instant of the trace in ns.

    Raises:
        UsageError: not a window, or an empty one.
    """
    left, colon, right = text.partition(":")
    if not colon:
        raise UsageError(f"--window {text!r}: write A:B, for example 1.5s:3s, 200ms: or a pair of start_ns:end_ns")
    start = _instant(left, text, extent[0]) if left.strip() else extent[0]
    end = _instant(right, text, extent[0]) if right.strip() else extent[1]
    if end <= start:
        raise UsageError(f"--window {text!r} is empty; the trace is {extent[1] - extent[0]:,} ns long")
    return start, end


def _instant(text: str, whole: str, first: int) -> int:
    if _INSTANT.fullmatch(text.strip()):
        return int(text)
    length = duration(text)
    if length is None:
        raise UsageError(f"--window {whole!r}: {text!r} is no time; write a number with ns, us, ms, s, min or h")
    return first + length


def duration(text: str) -> int | None:
    """`1.5s` -> ns; None where the text is no number with a unit."""
    match = _TIME.fullmatch(text.strip())
    return int(Decimal(match[1]) * _NS[match[2]]) if match else None
