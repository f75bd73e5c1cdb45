"""What stores of columns (SQLite, Arrow, Parquet) have in common: what can be asked of them, and bytes as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


@dataclass(frozen=True)
class Pick:
    """Rows whose column holds one of some numbers and, where `least_ns` is set, that last at least so long."""

    column: str
    values: tuple[int, ...]
    least_ns: int = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """What must be known of a row."""
        return (self.column, "start", "end") if self.least_ns else (self.column,)

    def takes(self, columns: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Which rows it takes of columns (values, and where they are null); bool of shape (rows,)."""
        value, null = columns[self.column]
        taken: np.ndarray = np.isin(value, self.values) & ~null
        if self.least_ns:
            (start, no_start), (end, no_end) = columns["start"], columns["end"]
            taken &= (end - start >= self.least_ns) & ~no_start & ~no_end
        return taken


class Tables(Protocol):
    """Tables of one source, every one of them optional.

    Attributes:
        source: what the user typed; errors begin with it.
        bad_values: cells fetched so far that should have been integers and became null.
        bad_texts: texts fetched so far that were not UTF-8; their bad bytes became U+FFFD.
    """

    source: str
    bad_values: int
    bad_texts: int

    def __contains__(self, table: str) -> bool:
        """Whether the source has the table, be it empty."""

    def columns(self, table: str) -> tuple[str, ...]:
        """The known columns that `table` really has; empty where there is no such table."""

    def count(self, table: str, where: Sequence[Pick] = ()) -> int:
        """Number of rows (that any of the picks takes), 0 where there is no such table."""

    def guess(self, table: str) -> int:
        """About how many rows, at no cost."""

    def fetch(self, table: str, ints: Sequence[str] = (), texts: Sequence[str] = (), reals: Sequence[str] = (),
              where: Sequence[Pick] = ()) -> pa.Table:  # fmt: skip
        """Columns of a table: int64, string and float64; those that it lacks are all null."""


def resolve(table: str, present: Iterable[str]) -> str | None:
    """The name under which a table is there: its own, or with the suffix that some exports give it."""
    return next((n for n in (table, *(f"{table}_V{v}" for v in range(9, 1, -1))) if n in present), None)


def decoded(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """Bytes as strings, what is not UTF-8 replaced by U+FFFD; and how many rows that concerned."""
    try:
        return column.cast(pa.string()), 0
    except pa.ArrowInvalid:
        coded = column.combine_chunks().dictionary_encode()
    words = coded.dictionary.to_pylist()
    bad = np.array([not _is_utf8(w) for w in words])
    texts = pa.array([w.decode("utf-8", "replace") for w in words], pa.string())
    return pa.chunked_array([texts.take(coded.indices)]), int(bad[coded.indices.drop_null().to_numpy()].sum())


def whole(value: object) -> int | None:
    """A cell as an integer; None for what is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -(2**63) <= value < 2**63 else None
    fits = isinstance(value, float) and value.is_integer() and abs(value) < 2**63
    return int(value) if fits and isinstance(value, float) else None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
