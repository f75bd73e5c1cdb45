"""Nsight exports as Arrow or Parquet: a folder with a file per table (`parquetdir`, `arrowdir`), or one `.arrows` file.

The types are not SQLite's: ids are unsigned, texts may hold any bytes, small numbers are narrow. A store gives the same
columns as `sqlite.Database` does, so that the rest of the reader need not know.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tprof.errors import SourceError
from tprof.read.columns import Pick, decoded, resolve, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

Stored = Any  # a Parquet file or an Arrow table, which have no types
_ENDS: Final = (".parquet", ".arrow")
_TEXTS: Final = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
_FILE: Final = b"ARROW1"  # the other kind of Arrow file begins with its schema


class ArrowTables:
    """One export, open for reading; Parquet is read when asked for, Arrow is mapped and takes no memory.

    Args:
        path: the folder, or an `.arrows` file.
        source: what the user typed; errors begin with it.
        known: tables and their columns that may be asked for.

    Raises:
        SourceError: a file of the export cannot be read.

    Attributes:
        source, bad_values, bad_texts: as `columns.Tables` says.
    """

    def __init__(self, path: Path, source: str, known: Mapping[str, Sequence[str]]) -> None:
        self.source = source
        self.bad_values = 0
        self.bad_texts = 0
        self._known = known
        try:
            present = _folder(path, known) if path.is_dir() else _streams(path)
            self._stored = {t: present[name] for t in known if (name := resolve(t, present))}
            self._names = {t: _names(stored) for t, stored in self._stored.items()}
        except (OSError, pa.ArrowException, UnicodeDecodeError) as problem:  # the last: names of columns
            raise SourceError(source, f"is a damaged export ({_first_line(problem)}); export it again") from problem

    def __enter__(self) -> Self:
        """The store itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        for stored in self._stored.values():
            if isinstance(stored, pq.ParquetFile):
                stored.close()

    def __contains__(self, table: str) -> bool:
        """Whether the export has the table, be it empty."""
        return table in self._stored

    def columns(self, table: str) -> tuple[str, ...]:
        """The known columns that `table` really has; empty where there is no such table."""
        present = self._names.get(table, ())
        return tuple(c for c in self._known.get(table, ()) if c in present)

    def count(self, table: str, where: Sequence[Pick] = ()) -> int:
        """Number of rows (that any of the picks takes), 0 where there is no such table."""
        if not where or table not in self._stored:
            return self.guess(table)
        return int(pc.sum(_mask(self._data(table, _asked(where)), where)).as_py() or 0)

    def guess(self, table: str) -> int:
        """How many rows."""
        stored = self._stored.get(table)
        return 0 if stored is None else _rows(stored)

    def fetch(self, table: str, ints: Sequence[str] = (), texts: Sequence[str] = (), reals: Sequence[str] = (),
              where: Sequence[Pick] = ()) -> pa.Table:  # fmt: skip
        """Columns of a table, as `sqlite.Database.fetch` gives them.

        Raises:
            SourceError: the file is damaged.
        """
        wanted = ((ints, pa.int64()), (texts, pa.string()), (reals, pa.float64()))
        types = {name: kind for names, kind in wanted for name in names}
        present = [name for name in types if name in self.columns(table)]
        if not present:
            return pa.table({name: pa.nulls(0, kind) for name, kind in types.items()})
        data = self._data(table, [*present, *_asked(where)])
        data = data.filter(_mask(data, where)) if where else data
        found = {name: self._finish(data[name], types[name]) for name in present}
        return pa.table({n: found.get(n, pa.nulls(len(data), k)) for n, k in types.items()})

    def _data(self, table: str, names: Sequence[str]) -> pa.Table:
        stored, columns = self._stored[table], list(dict.fromkeys(names))
        try:
            data = stored.read(columns) if isinstance(stored, pq.ParquetFile) else _sound(stored.select(columns))
            return _decoded(data)
        except (OSError, pa.ArrowException) as problem:
            message = f"its table {table} is damaged ({_first_line(problem)}); export the report again"
            raise SourceError(self.source, message) from problem

    def _finish(self, column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
        if not pa.types.is_string(kind):
            found, bad = _numbers(column, kind)
            self.bad_values += bad
            return found
        if column.type not in _TEXTS:
            column = _as_text(column)
        texts, bad = decoded(column.cast(pa.binary()))
        self.bad_texts += bad
        return texts.fill_null("")  # as SQLite's reader gives a null


def _folder(path: Path, known: Mapping[str, Sequence[str]]) -> dict[str, Stored]:
    """The tables of a folder that may be asked for, by the names of their files."""
    files = {file.stem: file for end in _ENDS for file in sorted(path.glob(f"*{end}")) if file.is_file()}
    names = [name for table in known if (name := resolve(table, files))]
    return {name: _open(files[name]) for name in names}


def _open(file: Path) -> Stored:
    if file.suffix == ".parquet":
        return pq.ParquetFile(file, memory_map=True)
    source = pa.memory_map(str(file))
    if source.read(len(_FILE)) == _FILE:
        return pa.ipc.open_file(source).read_all()
    source.seek(0)
    return pa.ipc.open_stream(source).read_all()


def _streams(file: Path) -> dict[str, Stored]:
    """The tables of an `.arrows` file: streams end to end, each of which says its table."""
    found: dict[str, Stored] = {}
    with pa.memory_map(str(file)) as source:
        while source.tell() < source.size():
            data = pa.ipc.open_stream(source).read_all()
            found[(data.schema.metadata or {}).get(b"table_name", b"").decode("utf-8", "replace")] = data
    return found


def _names(stored: Stored) -> list[str]:
    return stored.schema_arrow.names if isinstance(stored, pq.ParquetFile) else stored.column_names


def _rows(stored: Stored) -> int:
    return int(stored.metadata.num_rows if isinstance(stored, pq.ParquetFile) else stored.num_rows)


def _numbers(column: pa.ChunkedArray, kind: pa.DataType) -> tuple[pa.ChunkedArray, int]:
    """A column of any type as numbers, and how many of its values are none."""
    if column.type == pa.uint64() and kind == pa.int64():
        return pa.chunked_array([chunk.view(kind) for chunk in column.chunks], kind), 0  # as SQLite stores it
    try:
        if not pa.types.is_boolean(column.type):
            return column.cast(kind), 0
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        pass
    values = column.to_pylist()
    out = [whole(v) for v in values]
    bad = sum(a is None and b is not None for a, b in zip(out, values, strict=True))
    return pa.chunked_array([pa.array(out, pa.int64())]).cast(kind, safe=False), bad  # a real is the nearest one


def _decoded(data: pa.Table) -> pa.Table:
    """Dictionaries as their values."""
    for i, (name, column) in enumerate(zip(data.column_names, data.columns, strict=True)):
        if pa.types.is_dictionary(column.type):
            data = data.set_column(i, name, column.cast(column.type.value_type))
    return data


def _as_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column of any type as texts; what has no text is null."""
    try:
        return column.cast(pa.string())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.chunked_array([pa.nulls(len(column), pa.string())])


def _mask(data: pa.Table, where: Sequence[Pick]) -> pa.ChunkedArray:
    """Which rows any of the picks takes."""
    return reduce(pc.or_, [_taken(data, pick) for pick in where])


def _taken(data: pa.Table, pick: Pick) -> pa.ChunkedArray:
    numbers = {name: _numbers(data[name], pa.int64())[0] for name in _asked([pick])}
    taken = pc.is_in(numbers[pick.column], pa.array(pick.values, pa.int64()))
    if not pick.least_ns:
        return taken
    length = pc.subtract(numbers["end"], numbers["start"])
    return pc.and_(taken, pc.greater_equal(length, pick.least_ns).fill_null(False))  # noqa: FBT003  Arrow's own API


def _asked(where: Sequence[Pick]) -> list[str]:
    """Columns that decide which rows are taken."""
    return [p.column for p in where] + (["start", "end"] if any(p.least_ns for p in where) else [])


def _sound(data: pa.Table) -> pa.Table:
    """The same, once it is certain that no value lies outside its buffers.

    Raises:
        pa.ArrowInvalid: one does.
    """
    for column in data.columns:
        texts = pa.types.is_string(column.type)  # which need not be UTF-8, but must lie in the file
        (column.cast(pa.binary()) if texts else column).validate(full=True)
    return data


def _first_line(problem: Exception) -> str:
    return (str(problem).splitlines() or ["?"])[0].rstrip(".")
