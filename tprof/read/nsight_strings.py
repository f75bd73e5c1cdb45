"""Names in Nsight exports: string ids to dictionary codes, without a Python loop over rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tprof import model
from tprof.read import nsight_schema as ns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tprof.read.columns import Tables

_DENSE_LIMIT = 1 << 22  # above this largest id, look ids up by bisection: a dense array would be mostly holes


@dataclass(frozen=True)
class Labels:
    """Strings of some rows: `codes` int32 of shape (rows,), -1 for none, pointing into `values`, which are distinct."""

    codes: np.ndarray
    values: list[str]

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.codes)

    def array(self) -> pa.DictionaryArray:
        """As a column of a trace, with only the values that occur."""
        codes, used = _compact(self.codes, len(self.values))
        return model.labels(codes, [self.values[i] for i in used])

    def take(self, rows: np.ndarray) -> Labels:
        """The labels of some rows (indices, or a mask)."""
        return Labels(self.codes[rows], self.values)

    def map(self, change: Callable[[str], str | None]) -> Labels:
        """Every value changed; values that become equal share a code, and one that becomes None is no label."""
        values, renumber = _distinct([change(v) for v in self.values])
        return Labels(_renumber(renumber, self.codes), values)

    def drop(self, none: Sequence[bool]) -> Labels:
        """Without the values for which `none` holds; their rows have no label."""
        return Labels(np.where(np.append(none, True)[self.codes], model.NULL, self.codes), self.values)

    def fallback(self, other: Labels) -> Labels:
        """These, and where there is none the other's."""
        both = concat((self, other))
        mine, theirs = both.codes[: len(self)], both.codes[len(self) :]
        return Labels(np.where(mine < 0, theirs, mine), both.values)


def constant(value: str, rows: int) -> Labels:
    """One label for every row."""
    return Labels(np.zeros(rows, np.int32), [value])


def encode(column: pa.ChunkedArray) -> Labels:
    """Labels of a string column."""
    data = flat(column).dictionary_encode()
    return Labels(data.indices.fill_null(model.NULL).to_numpy(), data.dictionary.to_pylist())


def concat(parts: Sequence[Labels]) -> Labels:
    """Rows of several, one after another, over one set of values."""
    values, renumber = _distinct([v for p in parts for v in p.values])
    starts = np.cumsum([0, *(len(p.values) for p in parts)])
    codes = [_renumber(renumber[a:b], p.codes) for p, a, b in zip(parts, starts[:-1], starts[1:], strict=True)]
    return Labels(np.concatenate(codes) if codes else np.empty(0, np.int32), values)


def _compact(codes: np.ndarray, values: int) -> tuple[np.ndarray, np.ndarray]:
    """Codes renumbered over the values that occur, and the old numbers of those."""
    used = np.zeros(values + 1, bool)
    used[codes] = True  # -1 marks the spare last place
    used[-1] = False
    return _renumber(np.cumsum(used[:-1]) - 1, codes), np.flatnonzero(used)


def _renumber(new: np.ndarray, codes: np.ndarray) -> np.ndarray:
    table: np.ndarray = np.append(new, np.int32(model.NULL)).astype(np.int32)
    return np.take(table, codes)  # code -1 takes the appended -1


def _distinct(values: Sequence[str | None]) -> tuple[list[str], np.ndarray]:
    index: dict[str, int] = {}
    places = (model.NULL if v is None else index.setdefault(v, len(index)) for v in values)
    codes = np.fromiter(places, np.int32, len(values))
    return list(index), codes


class Strings:
    """The table StringIds. Ids need not be dense, nor are values distinct: rows are labelled by value.

    Attributes:
        missing: ids looked up so far that the table does not have.
    """

    def __init__(self, db: Tables) -> None:
        data = db.fetch(ns.STRINGS, ints=("id",), texts=("value",))
        data = data.filter(data["id"].is_valid())
        data = data.take(pc.sort_indices(data["id"]))
        self._ids = data["id"].to_numpy()
        words = flat(data["value"]).fill_null("").dictionary_encode()
        self._codes, self._values = words.indices.to_numpy(), words.dictionary
        self._dense = self._table()
        self.missing = 0

    def ids(self, names: Sequence[str]) -> tuple[int, ...]:
        """Every id whose string is one of `names`."""
        wanted = np.flatnonzero(pc.is_in(self._values, pa.array(names, pa.string())).to_numpy(zero_copy_only=False))
        return tuple(self._ids[np.isin(self._codes, wanted)].tolist())

    def lookup(self, column: pa.ChunkedArray, unknown: str | None = None) -> Labels:
        """Labels of a column of string ids.

        Args:
            column: int64, null for none.
            unknown: label of ids that StringIds lacks, with `{}` for the id; such rows are counted in `missing`.
                None leaves them without a label.
        """
        ids = column.fill_null(model.NULL).to_numpy(zero_copy_only=False)
        found = self._find(ids)
        codes, used = _compact(found, len(self._values))
        labels = Labels(codes, self._values.take(pa.array(used)).to_pylist())
        lost = (found < 0) & (ids != model.NULL)
        if unknown is None or not lost.any():
            return labels
        self.missing += int(lost.sum())
        return labels.fallback(_invent(ids, lost, unknown))

    def _table(self) -> np.ndarray | None:
        if not len(self._ids) or self._ids[0] < 0 or self._ids[-1] >= _DENSE_LIMIT:
            return None
        table = np.full(int(self._ids[-1]) + 2, model.NULL, np.int32)
        table[self._ids] = self._codes
        return table

    def _find(self, ids: np.ndarray) -> np.ndarray:
        if self._dense is not None:
            outside = (ids < 0) | (ids >= len(self._dense))
            return self._dense[np.where(outside, len(self._dense) - 1, ids)]
        if not len(self._ids):
            return np.full(len(ids), model.NULL, np.int32)
        place = np.minimum(np.searchsorted(self._ids, ids), len(self._ids) - 1)
        return np.where(self._ids[place] == ids, self._codes[place], model.NULL).astype(np.int32)


def _invent(ids: np.ndarray, lost: np.ndarray, unknown: str) -> Labels:
    names, place = np.unique(ids[lost], return_inverse=True)
    codes = np.full(len(ids), model.NULL, np.int32)
    codes[lost] = place
    return Labels(codes, [unknown.format(n) for n in names])


def flat(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece."""
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def empty_to_null(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Texts with the empty ones null: an export's null text arrives as an empty one."""
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
