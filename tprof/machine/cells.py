"""Integers of a SQLite table's leaf pages, row by row: machine code, compiled by numba.

The format is that of `read.sqlite_pages`, which says the same by numpy. Nothing is read outside a row's own record, so
a damaged file is refused. Importing this module imports numba; nothing is compiled before a function is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from numba import njit

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

BAD: Final = -1
_REAL, _ZERO, _ONE, _TEXT = 7, 8, 9, 12  # types of values; from the last one on, blobs and texts by their length
_compiled: Callable[..., Any] = njit(nogil=True, _nrt=False)  # no memory of its own


@_compiled
def _varint(data: np.ndarray, p: int, end: int) -> tuple[int, int]:
    """A number of up to nine bytes, and the position behind it; `BAD` if it does not end before `end`."""
    found = 0
    for n in range(9):
        if p >= end:
            break
        byte = data[p]
        p += 1
        if n == 8:
            return found << 8 | byte, p
        found = found << 7 | (byte & 127)
        if byte < 128:
            return found, p
    return 0, BAD


@_compiled
def _size(kind: int) -> int:
    """Bytes of a value of some type."""
    if kind >= _TEXT:
        return (kind - _TEXT) // 2
    if kind <= 4:
        return kind
    return 6 if kind == 5 else 8 if kind <= _REAL else 0


@_compiled
def _integer(data: np.ndarray, p: int, size: int) -> int:
    found = -1 if data[p] >= 128 else 0
    for n in range(p, p + size):
        found = found << 8 | data[n]
    return found


@_compiled
def _record(data: np.ndarray, p: int, end: int, wanted: np.ndarray, step: int,
            out: np.ndarray, null: np.ndarray, row: int) -> int:  # fmt: skip
    """Fill a row of the columns from a record; 0, or `BAD`."""
    size, kinds = _varint(data, p, end)
    place = p + size
    if kinds < 0 or size <= 0 or place > end:
        return BAD
    header = place
    for column in range(len(wanted)):
        kind, kinds = _varint(data, kinds, header)
        if kinds < 0 or kind < 0:  # also a row older than the column
            return BAD
        size = _size(kind)
        if size > end - place:
            return BAD
        if wanted[column] >= 0:
            at = wanted[column] * step + row
            if kind == _REAL or kind > _ONE:
                return BAD
            out[at] = _integer(data, place, size) if size else kind == _ONE
            null[at] = kind == 0
        place += size
    return BAD if kinds == header and place != end else 0  # SQLite, too, calls such a record damaged


@_compiled
def sqlite_columns(data: np.ndarray, leaves: np.ndarray, page: int, usable: int, wanted: np.ndarray, rows: int,
                   step: int, out: np.ndarray, null: np.ndarray) -> int:  # fmt: skip
    """Columns of some rows of a table.

    Args:
        data: the file.
        leaves: where its leaf pages begin, in order.
        page: bytes of a page.
        usable: those that may hold rows.
        wanted: of each column up to the last wanted one its place in what is filled, -1 for none.
        rows: there are, and no more are filled.
        step: from one column of what is filled to the next: all rows of the table.
        out: values to fill, from the first of these rows on, column after column; a null is 0.
        null: where they are null, likewise.

    Returns:
        Rows filled, or `BAD`: something that only SQLite can read.
    """
    row = 0
    for leaf in leaves:
        cells = data[leaf + 3] << 8 | data[leaf + 4]
        if 8 + 2 * cells > usable or row + cells > rows:
            return BAD
        for n in range(cells):
            pointer = data[leaf + 8 + 2 * n] << 8 | data[leaf + 9 + 2 * n]
            if pointer >= page:
                return BAD
            end = leaf + usable
            payload, p = _varint(data, leaf + pointer, end)
            if p < 0 or payload < 0 or payload > usable - 35:
                return BAD
            p = _varint(data, p, end)[1]
            if p < 0 or payload > end - p or _record(data, p, p + payload, wanted, step, out, null, row) < 0:
                return BAD
            row += 1
    return row
