"""Integer columns of a SQLite table straight from its pages, by numpy: in less than half the time of any driver.

The format is SQLite's own description of its file (sqlite.org/fileformat2.html): a table is a tree of pages, whose
leaves hold cells of (payload size, row id, record); a record is a header of one type per column, then the values. What
is not plainly that (values that are no integers, records that run over their page, rows older than a column) is left
to the driver: `integers` says None.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from tprof.intervals import expand
from tprof.machine import Native

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

_INTERIOR, _LEAF = 5, 13  # kinds of pages of a table with row ids
_NULL, _REAL, _ONE, _TEXT = 0, 7, 9, 12  # types of values; from the last one on, blobs and texts by their length
_SIZES: Final = np.array([0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0, *((t - _TEXT) // 2 for t in range(_TEXT, 256))])
_LEAVES: Final = 1 << 11  # taken at a time: the columns of their rows fit a processor's cache
_CELL: Final = 6  # bytes that the smallest cell takes with its pointer
_DEPTH: Final = 20  # of SQLite's own trees: one that holds itself ends as well
_OVERHEAD: Final = 35  # bytes of a page that a record on it can never have
_VARINT: Final = 9  # bytes of the longest one

_BYTES, _INTS = "uint8[::1]", "int64[::1]"
_CELLS: Final = Native(
    "tprof.machine.cells", "sqlite_columns", (_BYTES, _INTS, "int64", "int64", _INTS, "int64", "int64", _INTS, _BYTES),
    1 << 18, 1 << 24,
)  # fmt: skip

Column = tuple[np.ndarray, np.ndarray]


def integers(path: Path, root: int, width: int, wanted: Sequence[int]) -> list[Column] | None:
    """Columns of a table of a database that nobody writes to.

    Args:
        path: the database.
        root: number of the table's first page, as `sqlite_master` has it.
        width: columns of the table.
        wanted: positions of those to read.

    Returns:
        Of each its values, int64 of shape (rows,), and where they are null; rows in the order of their ids. None where
        only SQLite can say what the table holds.
    """
    try:
        return _columns(_Pages(path), root, width, wanted)
    except IndexError:  # a page or cell beyond the file: damage, which SQLite finds words for
        return None


def _columns(pages: _Pages, root: int, width: int, wanted: Sequence[int]) -> list[Column] | None:
    leaves = pages.leaves(root)
    if leaves is None:
        return None
    if call := _CELLS.choose(rows := pages.rows(leaves)):
        return pages.compiled(call, leaves, rows, wanted)
    parts = []
    for at in range(0, len(leaves), _LEAVES):
        part = pages.columns(leaves[at : at + _LEAVES], width, wanted)
        if part is None:
            return None
        parts.append(part)
    return [
        (np.concatenate([v for v, _ in column]), np.concatenate([n for _, n in column]))
        for column in zip(*parts, strict=True)
    ]


class _Pages:
    """A database file as bytes; positions are those in the file."""

    def __init__(self, path: Path) -> None:
        self._bytes = data = np.memmap(path, np.uint8, "r")
        size = self._short(np.array([16]))[0]
        self._page = 65536 if size == 1 else int(size)
        self._usable = self._page - int(data[20])
        self._words = np.ndarray((len(data) - 7,), ">i8", data, strides=(1,))  # the eight bytes from each position on

    def _short(self, at: np.ndarray) -> np.ndarray:
        return self._bytes[at].astype(np.int64) << 8 | self._bytes[at + 1]

    def _cells(self, pages: np.ndarray, pointers: int) -> tuple[np.ndarray, np.ndarray]:
        """Cells of some pages, in order: the number of their page among those given, and where they begin."""
        count = self._short(pages + 3)
        if (count > self._page // _CELL).any():
            raise IndexError("more cells than a page has room for")
        which, n = expand(np.zeros(len(pages), np.int64), count)
        return which, pages[which] + self._short(pages[which] + pointers + 2 * n)

    def leaves(self, root: int) -> np.ndarray | None:
        """Where the leaves of a table begin, in the order of its rows; None for another kind of tree."""
        pages = np.array([(root - 1) * self._page])
        for _ in range(_DEPTH):
            if (self._bytes[pages] != _INTERIOR).any():
                break
            which, cells = self._cells(pages, 12)
            children = np.concatenate([self._words[cells], self._words[pages + 8]]).astype(np.int64) >> 32
            order = np.argsort(np.concatenate([which, np.arange(len(pages))]), kind="stable")  # the last one comes last
            pages = (children[order] - 1) * self._page
            if (pages < 0).any() or len(pages) > len(self._bytes) // self._page:  # or more than there are
                raise IndexError("pages that are none")
        return pages if (self._bytes[pages] == _LEAF).all() and len(pages) else None

    def rows(self, leaves: np.ndarray) -> int:
        """Number of rows of some leaves."""
        return int(self._short(leaves + 3).sum())

    def compiled(
        self, call: Callable[..., int], leaves: np.ndarray, rows: int, wanted: Sequence[int]
    ) -> list[Column] | None:
        """Columns of all rows of a table, by machine code: `columns` is its reference."""
        if leaves.max() + self._page > len(self._bytes):
            return None
        place = np.full(max(wanted) + 1, -1)
        place[list(wanted)] = np.arange(len(wanted))
        values, null = (np.empty(len(wanted) * rows, kind) for kind in (np.int64, np.uint8))
        parts = np.array_split(leaves, max(1, min(pa.cpu_count(), len(leaves) // _LEAVES)))
        begins = np.cumsum([0, *(self.rows(part) for part in parts)]).tolist()

        def fill(part: np.ndarray, begin: int, end: int) -> bool:
            sizes = self._page, self._usable, place, end - begin, rows
            return call(self._bytes, part, *sizes, values[begin:], null[begin:]) == end - begin

        with ThreadPoolExecutor(len(parts)) as threads:
            done = all(threads.map(fill, parts, begins, begins[1:]))
        shape = len(wanted), rows
        return list(zip(values.reshape(shape), null.reshape(shape).view(bool), strict=True)) if done else None

    def columns(self, leaves: np.ndarray, width: int, wanted: Sequence[int]) -> list[Column] | None:
        """Columns of the rows of some leaves."""
        at, ends = self._records(self._cells(leaves, 8)[1])
        if (self._bytes[at] != width + 1).any():  # the header has a byte for itself and for each type
            return None
        found: dict[int, Column] = {}
        place = at + width + 1
        for n in range(max(wanted) + 1):
            kind = self._bytes[at + 1 + n]
            low, high = int(kind.min(initial=255)), int(kind.max(initial=0))
            if high >= 128 or (n in wanted and (high >= _TEXT or (kind == _REAL).any())):
                return None
            size = _SIZES[low if low == high else kind]  # most columns have one size everywhere
            place = place + size if high else place
            if n in wanted:
                found[n] = self._values(place, size, kind) if high else (np.zeros(len(at), np.int64), kind == _NULL)
        # Values that do not end where their record does are damage to SQLite, too.
        damaged = place != ends if max(wanted) + 1 == width else place > ends
        return None if damaged.any() else [found[n] for n in wanted]

    def _values(self, ends: np.ndarray, size: np.ndarray, kind: np.ndarray) -> Column:
        """Values of so many bytes that end at some positions."""
        if not size.any():
            return (kind == _ONE).astype(np.int64), kind == _NULL
        unused = 64 - 8 * np.maximum(size, 1)
        value = self._words[ends - 8].astype(np.int64) << unused >> unused
        return value if size.all() else np.where(size == 0, kind == _ONE, value), kind == _NULL

    def _records(self, cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the record of each cell begins, behind two numbers of variable length, and where it ends.

        Raises:
            IndexError: one is longer than its page.
        """
        first, second = self._bytes[cells], self._bytes[cells + 1]
        long = first >= 128
        payload = np.where(long, (first & 127).astype(np.int64) << 7 | second, first)
        if (long & (second >= 128)).any() or (payload > self._usable - _OVERHEAD).any():
            raise IndexError("a record that its page does not hold")
        at = cells + 1 + long
        more = np.ones(len(at), bool)
        for _ in range(_VARINT):
            more &= self._bytes[at] >= 128
            if not more.any():
                return at + 1, at + 1 + payload
            at = at + more
        return at, at + payload
