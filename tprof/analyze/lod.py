"""Level of detail: how much of each pixel of a lane was what, and its longest intervals, without touching them all.

A lane is sorted, disjoint intervals with a code each. Of every 128 intervals the sum, the number and the longest of
each code are kept. So a question costs what is drawn, not what is recorded, and a filter by code costs nothing. The
answers are exact.
"""

from __future__ import annotations

from typing import Final

import numpy as np

_BLOCK: Final = 128
_CHUNK: Final = _BLOCK << 13  # intervals summed at a time: bounds the memory of building


class Blocks:
    """Sums over blocks of intervals.

    Args:
        start: begin of each interval, ns, sorted; shape (intervals,).
        end: its end; none is after the next begin.
        code: what it was, from 0 to `codes` - 1; shape (intervals,).
        codes: number of codes.
    """

    def __init__(self, start: np.ndarray, end: np.ndarray, code: np.ndarray, codes: int) -> None:
        self._start, self._end, self.code, self._codes = start, end, code, codes
        blocks = -(-len(start) // _BLOCK)
        self._done, self._counted = (np.zeros((blocks + 1, codes), kind) for kind in (np.int64, np.int32))
        self._longest = np.zeros((blocks, codes), np.int64)
        for first in range(0, len(start), _CHUNK):
            part, block = slice(first, first + _CHUNK), first // _BLOCK
            length = end[part] - start[part]
            key = np.arange(len(length)) // _BLOCK * codes + code[part]
            into = slice(block + 1, block + 1 + -(-len(length) // _BLOCK))
            self._done[into] = self._sums(key, length)
            self._counted[into] = self._sums(key)
            np.maximum.at(self._longest[block : into.stop - 1].reshape(-1), key, length)
        np.cumsum(self._done, axis=0, out=self._done)
        np.cumsum(self._counted, axis=0, out=self._counted)

    def _sums(self, key: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
        """By group and code, shape (groups, codes); exact below 2 ** 53: 104 days."""
        groups = int(key[-1]) // self._codes + 1
        return np.bincount(key, weight, groups * self._codes).reshape(groups, self._codes)

    def spent(self, edges: np.ndarray) -> np.ndarray:
        """Nanoseconds of each code between neighbouring instants.

        Args:
            edges: sorted instants, shape (pixels + 1,).

        Returns:
            Shape (codes, pixels).
        """
        begun = np.searchsorted(self._start, edges, side="right")
        block = np.maximum(begun - 1, 0) // _BLOCK
        row = block[:, None] * _BLOCK + np.arange(_BLOCK)
        live, row = row < begun[:, None], np.minimum(row, len(self._start) - 1)
        length = np.where(live, np.minimum(self._end[row], edges[:, None]) - self._start[row], 0)
        key = np.arange(len(edges))[:, None] * self._codes + self.code[row]
        key[-1, -1] = max(key[-1, -1], (len(edges) - 1) * self._codes)
        rest = self._sums(key.ravel(), length.ravel()).astype(np.int64)
        return np.diff(self._done[block] + rest, axis=0).T

    def within(self, low: int, high: int) -> tuple[int, int]:
        """First and behind the last of the intervals that reach into a window."""
        first, last = np.searchsorted(self._end, low, side="right"), np.searchsorted(self._start, high, side="left")
        return int(first), max(int(first), int(last))

    def count(self, low: int, high: int, wanted: np.ndarray) -> int:
        """How many intervals of the wanted codes (shape (codes,) bool) reach into a window."""
        before, until = (self._before(row) for row in self.within(low, high))
        return int((until - before)[wanted].sum())

    def _before(self, row: int) -> np.ndarray:
        """Number of intervals of each code before a row."""
        first = row - row % _BLOCK
        return self._counted[row // _BLOCK] + np.bincount(self.code[first:row], minlength=self._codes)

    def longest(self, low: int, high: int, most: int, wanted: np.ndarray) -> np.ndarray:
        """Rows of the longest intervals of the wanted codes that reach into a window, longest first."""
        first, last = self.within(low, high)
        blocks = np.arange(first // _BLOCK, -(-last // _BLOCK))
        if len(blocks) > most:  # each of the longest is in one of the blocks with the longest
            longest = self._longest[blocks][:, wanted].max(axis=1, initial=0)
            blocks = blocks[np.argpartition(-longest, most)[:most]]
        row = (blocks[:, None] * _BLOCK + np.arange(_BLOCK)).ravel()
        row = row[(row >= first) & (row < last)]
        row = row[wanted[self.code[row]]]
        return row[np.argsort(self._start[row] - self._end[row], kind="stable")[:most]]


def pixels(low: int, high: int, most: int) -> np.ndarray:
    """Integer edges of the pixels of a window: at most so many, none shorter than a nanosecond; shape (pixels + 1,)."""
    count = max(min(most, high - low), 1)
    return low + (high - low) * np.arange(count + 1) // count
