"""The sweeps of `tprof.intervals` over nested events as stacks, and `model.refine`: machine code, compiled by numba.

Importing this module imports numba; nothing is compiled before a function is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

UNSORTED: Final = -2
_MIX: Final = 0x9E3779B97F4A7C15 - (1 << 64)  # of a hash: an odd number of many bits, as an int64
_compiled: Callable[..., Any] = njit(nogil=True, _nrt=False)  # no memory of its own


@_compiled
def _show(bounds: np.ndarray, shown: np.ndarray, count: int, time: int, what: int) -> int:
    """From an instant on something else is innermost; stretches without length and neighbours alike are none."""
    if count and bounds[count - 1] == time:
        count -= 1
    if count == 0 or shown[count - 1] != what:
        bounds[count], shown[count] = time, what
        count += 1
    return count


@_compiled
def _top(value: np.ndarray, stack: np.ndarray, depth: int) -> int:
    """What to show of the innermost of so many open events."""
    if depth == 0:
        return -1
    return value[stack[depth - 1]] if len(value) else stack[depth - 1]


@_compiled
def sweep_innermost(start: np.ndarray, end: np.ndarray, rows: np.ndarray, value: np.ndarray,
                    bounds: np.ndarray, shown: np.ndarray, stack: np.ndarray) -> int:  # fmt: skip
    """`intervals.innermost`: who is innermost from each of the bounds on, -1 behind the last event.

    Args:
        start: of all events.
        end: of the same.
        rows: those that count, outer ones first; all if empty.
        value: what to show of each; its row if empty.
        bounds: to fill; two for each event.
        shown: the same.
        stack: rows that are open.

    Returns:
        Bounds filled; `UNSORTED` where events do not come outer ones first, -1 where more are open than fit.
    """
    count = depth = 0
    last, reach = -(1 << 62), 0
    for n in range(len(rows) or len(start)):
        row = rows[n] if len(rows) else n
        begin, finish = start[row], end[row]
        if begin < last or (begin == last and finish > reach):
            return UNSORTED
        if finish <= begin:
            continue
        last, reach = begin, finish
        while depth and end[stack[depth - 1]] <= begin:
            depth -= 1
            count = _show(bounds, shown, count, end[stack[depth]], _top(value, stack, depth))
        while depth and end[stack[depth - 1]] < finish:  # never innermost again
            depth -= 1
        if depth == len(stack):
            return -1
        stack[depth] = row
        depth += 1
        count = _show(bounds, shown, count, begin, _top(value, stack, depth))
    while depth:
        depth -= 1
        count = _show(bounds, shown, count, end[stack[depth]], _top(value, stack, depth))
    return count


@_compiled
def sweep_parents(start: np.ndarray, end: np.ndarray, rows: np.ndarray, out: np.ndarray, stack: np.ndarray) -> int:
    """`intervals.parents`; arguments and result as of `sweep_innermost`, `out` by event."""
    depth, last, reach = 0, -(1 << 62), 0
    for n in range(len(rows) or len(start)):
        row = rows[n] if len(rows) else n
        begin, finish = start[row], end[row]
        out[row] = -1
        if begin < last or (begin == last and finish > reach):
            return UNSORTED
        if finish <= begin:
            continue
        last, reach = begin, finish
        while depth and (end[stack[depth - 1]] <= begin or end[stack[depth - 1]] < finish):
            depth -= 1
        if depth == len(stack):
            return -1
        out[row] = stack[depth - 1] if depth else -1
        stack[depth] = row
        depth += 1
    return len(out)


@_compiled
def number_pairs(key: np.ndarray, part: np.ndarray, slots: np.ndarray, out: np.ndarray) -> int:
    """`model.refine`: number the distinct pairs of two columns in the order in which they first come.

    Args:
        key: a column.
        part: the other.
        slots: a hash table of first rows, -1 where free; a power of two.
        out: to fill with the number of each row's pair.

    Returns:
        Distinct pairs, or -1 where they are too many for the table.
    """
    count, mask = 0, len(slots) - 1
    for row in range(len(key)):
        if row and key[row] == key[row - 1] and part[row] == part[row - 1]:
            out[row] = out[row - 1]
            continue
        mixed = (key[row] * _MIX ^ part[row]) * _MIX
        slot = (mixed ^ (mixed >> 32)) & mask
        while slots[slot] >= 0 and (key[slots[slot]] != key[row] or part[slots[slot]] != part[row]):
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            if 2 * count > mask:
                return -1
            slots[slot], out[row] = row, count
            count += 1
        out[row] = out[slots[slot]]
    return count
