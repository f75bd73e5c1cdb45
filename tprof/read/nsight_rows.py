"""Rows of one event table of an Nsight export: fetched, checked, and the lost ones counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tprof.events import Note
from tprof.model import first_rows, within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.read.columns import Pick, Tables
    from tprof.read.nsight_strings import Strings

PID_BITS, TID_MASK, PID_MASK = 24, 0xFFFFFF, 0xFFFFFF


@dataclass
class Reading:
    """What reading one export has at hand and what it has lost so far.

    Attributes:
        db: the open file.
        strings: its names.
        notes: warnings so far.
        dropped: rows lost, by reason.
        skipped: rows that are no events, by table or kind.
    """

    db: Tables
    strings: Strings
    notes: list[Note] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)

    def note(self, code: str, message: str, count: int = 1) -> None:
        """Add a warning about this source."""
        self.notes.append(Note(code, message, count, self.db.source))

    def rows(self, table: str, required: Sequence[str], ints: Sequence[str] = (), texts: Sequence[str] = (),
             reals: Sequence[str] = (), where: Sequence[Pick] = ()) -> pa.Table:  # fmt: skip
        """Rows of an event table in which every required column holds an integer and the end is not before the start.

        Args:
            table: one of `nsight_schema.EVENT_TABLES`.
            required: integer columns without which a row means nothing, `start` and `end` among them.
            ints: further integer columns.
            texts: string columns.
            reals: columns of floating-point numbers.
            where: only rows that any of these takes.

        Returns:
            The good rows; none, with a note, where the table lacks a required column.
        """
        columns = (*required, *(i for i in ints if i not in required))
        absent = [c for c in required if c not in self.db.columns(table)]
        if absent and table in self.db:
            self._unusable(table, absent)
        if absent:
            return self.db.fetch("", columns, texts, reals)
        data = self.db.fetch(table, columns, texts, reals, where)
        return self._whole(table, data, required)

    def int32(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """A column narrowed to int32; a number that does not fit becomes null and counts as bad."""
        fits = pc.and_(pc.greater_equal(column, -(1 << 31)), pc.less(column, 1 << 31))
        self.db.bad_values += pc.sum(pc.invert(fits)).as_py() or 0
        return pc.if_else(fits, column, pa.scalar(None, pa.int64())).cast(pa.int32())

    def _unusable(self, table: str, absent: Sequence[str]) -> None:
        if count := self.db.count(table):
            self.dropped[f"{table} without {', '.join(absent)}"] += count
            self.note(
                "missing-column", f"{table} has no column {', '.join(absent)}; its {count} rows are left out", count
            )

    def _whole(self, table: str, data: pa.Table, required: Sequence[str]) -> pa.Table:
        if any(data[c].null_count for c in required):
            whole = pc.is_valid(data[required[0]])
            for name in required[1:]:
                whole = pc.and_(whole, pc.is_valid(data[name]))
            data = self.keep(data, whole.to_numpy(), f"{table} without {', '.join(required[:-1])} or {required[-1]}")
        start, end = numbers(data, "start"), numbers(data, "end")
        good = within(start) & within(end)
        if not good.all():
            data = self.keep(data, good, f"{table} with times that cannot be")
            start, end = start[good], end[good]
        return self.keep(data, end >= start, f"{table} with the end before the start")

    def keep(self, data: pa.Table, good: np.ndarray, reason: str) -> pa.Table:
        """The good rows; the others count as dropped for that reason."""
        if good.all():
            return data
        self.dropped[reason] += int((~good).sum())
        return data.filter(pa.array(good))


def distinct(*columns: np.ndarray) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    """Each row's number among the distinct rows, int64 of shape (rows,), and those distinct rows as they first come."""
    group = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = pa.array(column).dictionary_encode()
        group = group * max(len(encoded.dictionary), 1) + encoded.indices.to_numpy()
        group = pa.array(group).dictionary_encode().indices.to_numpy().astype(np.int64)
    first = first_rows(group)
    return group, list(zip(*(c[first].tolist() for c in columns), strict=True))


def numbers(data: pa.Table, name: str, null: int = 0) -> np.ndarray:
    """An int64 column, shape (rows,), with `null` for nulls."""
    column = data[name]
    found: np.ndarray = (column.fill_null(null) if column.null_count else column).to_numpy()
    return found


def pid(global_id: int) -> int:
    """Process id from a globalTid or globalPid: bits 24 to 47."""
    return (global_id >> PID_BITS) & PID_MASK


def pids(global_ids: np.ndarray) -> np.ndarray:
    """The same of many."""
    return (global_ids >> PID_BITS) & PID_MASK


def tids(global_ids: np.ndarray) -> np.ndarray:
    """Thread ids from globalTid: bits 0 to 23."""
    return global_ids & TID_MASK
