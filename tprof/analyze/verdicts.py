"""Which shapes are worth preparing: how concentrated a kernel's calls are, and a verdict per key.

A verdict looks at its own kernel alone, so another kernel never changes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from tprof.analyze.result import Row

Verdict = Literal["pin", "warm", "generic", "leave"]

COSTLY_NS: Final = 10_000_000  # a request feels it; a lookup and a load on a fast disk stay below
HOT_SHARE: Final = 0.01  # of its kernel's calls …
HOT_CALLS: Final = 100  # … or so many in all, however small their share …
REPEATED: Final = 2  # … but never fewer
COVERED: Final = (1, 2, 5, 10, 20, 50)


def is_hot(calls: int, of_kernel: int) -> bool:
    """Whether a shape comes again: at least 2 calls, and at least 1 % of its kernel's calls or 100 calls."""
    return calls >= REPEATED and (calls >= HOT_CALLS or calls >= HOT_SHARE * of_kernel)


def verdict(calls: int, of_kernel: int, cold_ns: int, *, tuned: bool) -> Verdict:
    """What to do about a shape.

    `leave`: what was cold about it took less than 10 ms. Of the others, a hot shape is to `pin` if it was tuned (keep
    its configuration and compile it at start-up), else to `warm` (compile it at start-up); one that is not hot is to
    go the `generic` way: a conservative configuration that is compiled anyway, instead of a search of its own.

    Args:
        calls: work calls of the shape.
        of_kernel: work calls of its kernel in all shapes.
        cold_ns: host time spent cold on its behalf.
        tuned: candidates were timed for it.
    """
    if cold_ns < COSTLY_NS:
        return "leave"
    if not is_hot(calls, of_kernel):
        return "generic"
    return "pin" if tuned else "warm"


def concentration(kernel: str, calls: list[int]) -> Row:
    """How many of a kernel's calls its most frequent shapes make up.

    Args:
        kernel: its name.
        calls: calls of each of its shapes.
    """
    ordered = np.sort(np.array(calls, np.int64))[::-1]
    whole, reached = int(ordered.sum()), np.cumsum(ordered)
    hot = [n for n in calls if is_hot(n, whole)]
    steps = [k for k in COVERED if k <= len(calls)]
    return {
        "kernel": kernel,
        "keys": len(calls),
        "calls": whole,
        "hot_keys": len(hot),
        "hot_share": sum(hot) / whole if whole else 0.0,
        "once": sum(n == 1 for n in calls),
        "covered": [{"k": k, "share": int(reached[k - 1]) / whole if whole else 0.0} for k in steps],
    }
