"""`intervals.innermost` and `parents` by machine code; None where numpy's blocks, their reference, are to be taken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.machine import Native

if TYPE_CHECKING:
    from collections.abc import Callable

_SWEEP: Final = "tprof.machine.sweep"
_INTS: Final = "int64[::1]"
INNERMOST: Final = Native(
    _SWEEP, "sweep_innermost", (_INTS, _INTS, _INTS, "int16[::1]", _INTS, "int32[::1]", _INTS), 1 << 18, 1 << 23
)
PARENTS: Final = Native(_SWEEP, "sweep_parents", (_INTS,) * 5, 1 << 18, 1 << 23)
_OPEN: Final = 1 << 12  # events that may be open at once
_UNSORTED: Final = -2  # what a sweep says of events that do not come outer ones first


def innermost(
    start: np.ndarray, end: np.ndarray, rows: np.ndarray | None, value: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray] | None:
    """Bounds and values of `intervals.innermost`, whose arguments these are."""
    call = INNERMOST.choose(len(start))
    if call is None:
        return None
    most = 2 * (len(start) if rows is None else len(rows))
    bounds, shown = np.empty(most, np.int64), np.empty(most, np.int32)
    said = np.empty(0, np.int16) if value is None else value.astype(np.int16, copy=False)
    count = _called(call, start, end, rows, (said, bounds, shown))
    kind = np.dtype(np.int64) if value is None else value.dtype
    if count == 0:
        return np.zeros(0, np.int64), np.zeros(0, np.int16)
    return None if count < 0 else (bounds[:count], shown[: count - 1].astype(kind))


def parents(start: np.ndarray, end: np.ndarray) -> np.ndarray | None:
    """`intervals.parents`."""
    call, out = PARENTS.choose(len(start)), np.empty(len(start), np.int64)
    return None if call is None or _called(call, start, end, None, (out,)) < 0 else out


def _called(
    call: Callable[..., int],
    start: np.ndarray,
    end: np.ndarray,
    rows: np.ndarray | None,
    more: tuple[np.ndarray, ...],
) -> int:
    """Call a sweep with the events as they come, and if that is not outer ones first, sorted."""
    if rows is not None and not len(rows):
        return 0
    start, end, stack = (np.ascontiguousarray(a, np.int64) for a in (start, end, np.empty(_OPEN, np.int64)))
    some = np.empty(0, np.int64) if rows is None else np.ascontiguousarray(rows, np.int64)
    count = call(start, end, some, *more, stack)
    if count == _UNSORTED:
        some = np.arange(len(start)) if rows is None else some
        count = call(start, end, some[np.lexsort((-end[some], start[some]))], *more, stack)
    return count
