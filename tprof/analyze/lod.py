"""Level of detail: how much of each pixel of a lane was what, and its longest intervals, without touching them all.

A lane is sorted, disjoint intervals with a value each. Sums per value and the longest of every 64 intervals are kept, so
a question costs what is drawn, not what is recorded: 5 million intervals take 6 MB and a millisecond, exactly.
"""

from __future__ import annotations

from typing import Final

import numpy as np

_BLOCK: Final = 64
_CHUNK: Final = _BLOCK << 14  # intervals summed at a time: bounds the memory of building


class Blocks:
    """Sums over blocks of intervals.

    Args:
        start: begin of each interval, ns, sorted; shape (intervals,).
        end: its end; none is after the next begin.
        value: what it was, from 0 to `values` - 1, or more for what does not count; shape (intervals,).
        values: number of values.
    """

    def __init__(self, start: np.ndarray, end: np.ndarray, value: np.ndarray, values: int) -> None:
        self.start, self.end, self.value, self._values = start, end, value, values
        blocks = -(-len(start) // _BLOCK)
        sums = np.zeros((blocks + 1, values), np.int64)
        self._longest = np.zeros(blocks, np.int64)
        for first in range(0, len(start), _CHUNK):
            part = slice(first, first + _CHUNK)
            at = slice(first // _BLOCK, -(-min(first + _CHUNK, len(start)) // _BLOCK))
            length = end[part] - start[part]
            length[value[part] >= values] = 0
            block = np.arange(len(length)) // _BLOCK
            sums[at.start + 1 : at.stop + 1] = self._sums(block, np.minimum(value[part], values - 1), length)
            self._longest[at] = np.maximum.reduceat(length, np.arange(0, len(length), _BLOCK))
        self._done = np.cumsum(sums, axis=0)

    def __len__(self) -> int:
        """Number of intervals."""
        return len(self.start)

    def _sums(self, group: np.ndarray, value: np.ndarray, length: np.ndarray) -> np.ndarray:
        """Nanoseconds by group and value, shape (groups, values); exact below 104 days."""
        groups = int(group[-1]) + 1 if len(group) else 0
        spent = np.bincount(group * self._values + value, length, groups * self._values)
        return spent.astype(np.int64).reshape(groups, self._values)

    def spent(self, edges: np.ndarray) -> np.ndarray:
        """Nanoseconds of each value between neighbouring instants.

        Args:
            edges: sorted instants, shape (pixels + 1,).

        Returns:
            Shape (values, pixels).
        """
        if not len(self.start):
            return np.zeros((self._values, len(edges) - 1), np.int64)
        begun = np.searchsorted(self.start, edges, side="right")
        block = np.maximum(begun - 1, 0) // _BLOCK
        row = block[:, None] * _BLOCK + np.arange(_BLOCK)
        live, row = row < begun[:, None], np.minimum(row, len(self.start) - 1)
        length = np.where(live, np.minimum(self.end[row], edges[:, None]) - self.start[row], 0)
        value = self.value[row]
        length[value >= self._values] = 0
        group = np.repeat(np.arange(len(edges)), _BLOCK)
        rest = self._sums(group, np.minimum(value, self._values - 1).ravel(), length.ravel())
        return np.diff(self._done[block] + rest, axis=0).T

    def within(self, low: int, high: int) -> tuple[int, int]:
        """First and behind the last of the intervals that reach into a window."""
        first, last = np.searchsorted(self.end, low, side="right"), np.searchsorted(self.start, high, side="left")
        return int(first), max(int(first), int(last))

    def longest(self, low: int, high: int, most: int) -> np.ndarray:
        """Rows of the longest intervals that reach into a window, longest first."""
        first, last = self.within(low, high)
        blocks = np.arange(first // _BLOCK, -(-last // _BLOCK))
        if len(blocks) > most:  # each of the longest is in one of the blocks with the longest
            blocks = blocks[np.argpartition(-self._longest[blocks], most)[:most]]
        row = (blocks[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
        row = row[(row >= first) & (row < last)]
        row = row[self.value[row] < self._values]
        return row[np.argsort(self.start[row] - self.end[row], kind="stable")[:most]]


def pixels(low: int, high: int, most: int) -> np.ndarray:
    """Integer edges of the pixels of a window: at most so many, none shorter than a nanosecond; shape (pixels + 1,)."""
    count = max(min(most, high - low), 1)
    return low + (high - low) * np.arange(count + 1) // count
