"""SQLite files as Arrow columns: read-only, only identifiers that the caller's code lists, every table optional."""

from __future__ import annotations

import logging
import sqlite3
import struct
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Self
from urllib.parse import quote

import adbc_driver_manager as adbc
import adbc_driver_sqlite
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tprof.errors import SourceError
from tprof.model import numbers
from tprof.read.columns import Pick, decoded, resolve, whole
from tprof.read.detect import SQLITE_MAGIC, in_use
from tprof.read.sqlite_pages import integers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_BATCH_ROWS = 65536  # the driver settles a column's type on its first batch
_SPLIT_ROWS = 1 << 18  # from here on two connections read half of a table each: 1.7 times as fast on two processors
_BUSY_SECONDS = 1.0
_IDLE = "&immutable=1"
_log = logging.getLogger(__name__)


class Database:
    """One SQLite file, open for reading only.

    Args:
        path: the file on disk.
        source: what the user typed; errors begin with it.
        known: tables and their columns that may be asked for. No other identifier reaches SQL.

    Raises:
        SourceError: the file is absent, no database, cut short, or locked.

    Attributes:
        bad_values: cells fetched so far that should have been integers and became null.
        bad_texts: texts fetched so far that were not UTF-8; their bad bytes became U+FFFD.
    """

    def __init__(self, path: Path, source: str, known: Mapping[str, Sequence[str]]) -> None:
        self.source = source
        self.bad_values = 0
        self.bad_texts = 0
        self._known = known
        _check_header(path, source)
        self._path = path
        self._uri = _uri(path)
        self._slow = self._open()
        self._fast: list[tuple[adbc.AdbcDatabase, adbc.AdbcConnection]] = []
        self._layouts: dict[str, tuple[int, int, dict[str, int]]] = {}  # first page, columns, places of integers
        try:
            self._tables = self._probe()
        except SourceError:
            self.close()
            raise

    def __enter__(self) -> Self:
        """The database itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Close every connection."""
        self._slow.close()
        for driver, connection in self._fast:
            connection.close()
            driver.close()

    def columns(self, table: str) -> tuple[str, ...]:
        """The known columns that `table` really has; empty where there is no such table."""
        return self._tables.get(table, ("", ()))[1]

    def __contains__(self, table: str) -> bool:
        """Whether the file has the table, be it empty."""
        return table in self._tables

    def count(self, table: str, where: Sequence[Pick] = ()) -> int:
        """Number of rows (that any of the picks takes), 0 where there is no such table."""
        if table not in self._tables:
            return 0
        return int(str(self._rows(_query("count(*)", self._tables[table][0], _condition(where)))[0][0]))

    def guess(self, table: str) -> int:
        """About how many rows: the last row's number, which costs nothing to find."""
        return self._last_row(self._tables[table][0]) if table in self._tables else 0

    def _last_row(self, table: str) -> int:
        try:
            return int(self._slow.execute(_query("max(rowid)", table)).fetchone()[0] or 0)
        except sqlite3.Error:  # a table may be without row numbers
            return 0

    def fetch(self, table: str, ints: Sequence[str] = (), texts: Sequence[str] = (), reals: Sequence[str] = (),
              where: Sequence[Pick] = ()) -> pa.Table:  # fmt: skip
        """Columns of a table.

        Args:
            table: one of the known tables.
            ints: columns that come as int64; a value that is no integer becomes null and is counted.
            texts: columns that come as strings, bytes that are not UTF-8 replaced.
            reals: columns that come as float64; what is no number, or minus infinity, becomes null.
            where: only rows that any of these takes, of known columns.

        Returns:
            All the columns asked for, in that order; one that the table does not have is all null. No rows where
            there is no such table.

        Raises:
            SourceError: the file is damaged or locked.
        """
        wanted = ((ints, pa.int64()), (texts, pa.string()), (reals, pa.float64()))
        types = {name: kind for names, kind in wanted for name in names}
        present = [name for name in types if name in self.columns(table)]
        if not present:
            return pa.table({name: pa.nulls(0, kind) for name, kind in types.items()})
        schema = pa.schema([(name, types[name]) for name in present])
        data = self._select(self._tables[table][0], schema, where)
        return pa.table({n: data[n] if n in present else pa.nulls(len(data), k) for n, k in types.items()})

    def _select(self, table: str, schema: pa.Schema, where: Sequence[Pick]) -> pa.Table:
        raw = pa.schema([f.with_type(pa.binary()) if pa.types.is_string(f.type) else f for f in schema])
        data = self._paged(table, raw, where)
        data = self._half_paged(table, raw, where) if data is None else data
        data = self._arrow(table, raw, where) if data is None else data
        data = self._python(_query(_what(raw), table, _condition(where)), raw) if data is None else data
        return pa.table([self._finish(c, f.type) for c, f in zip(data.columns, schema, strict=True)], schema=schema)

    def _finish(self, column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
        """Bytes as text; minus infinity, which stands for null, as null."""
        if pa.types.is_floating(kind):
            return pc.if_else(pc.not_equal(column, -np.inf), column, pa.scalar(None, pa.float64()))
        if not pa.types.is_string(kind):
            return column
        texts, bad = decoded(column)
        self.bad_texts += bad
        return texts

    def _paged(self, table: str, schema: pa.Schema, where: Sequence[Pick]) -> pa.Table | None:
        """From the file's own pages; None where they are in use, or hold more than integers and nulls."""
        root, width, places = self._layouts[table]
        names = list(dict.fromkeys([*schema.names, *(name for pick in where for name in pick.columns)]))
        if not self._uri.endswith(_IDLE) or not all(name in places for name in names):
            return None
        found = integers(self._path, root, width, [places[name] for name in names])
        columns = dict(zip(names, found or (), strict=False))
        others = [f.name for f in schema if f.type != pa.int64()]
        if found is None or not all(columns[name][1].all() for name in others):
            return None
        if where:
            rows = np.logical_or.reduce([pick.takes(columns) for pick in where])
            columns = {name: (value[rows], null[rows]) for name, (value, null) in columns.items()}
        return pa.table([_whole(columns[f.name], f.type) for f in schema], schema=schema)

    def _half_paged(self, table: str, schema: pa.Schema, where: Sequence[Pick]) -> pa.Table | None:
        """Integers from the pages, the rest through ADBC; None where there is only one of them, or it cannot be."""
        whole, rest = (pa.schema([f for f in schema if (f.type == pa.int64()) == is_int]) for is_int in (True, False))
        paged = self._paged(table, whole, where) if len(whole) and len(rest) else None
        others = None if paged is None else self._arrow(table, rest, where)
        if paged is None or others is None or len(paged) != len(others):
            return None
        return pa.table([(paged if f.name in whole.names else others)[f.name] for f in schema], schema=schema)

    def _parts(self, table: str, where: str) -> list[str]:
        """Conditions that give the rows of a table, in their order; one for each connection that is to read it."""
        rows = self._last_row(table)
        if rows < _SPLIT_ROWS or not self._uri.endswith(_IDLE):  # else a writer could come between the two
            return [where]
        both = f"({where}) AND " if where else ""
        return [f"{both}rowid <= {rows // 2}", f"{both}rowid > {rows // 2}"]

    def _arrow(self, table: str, schema: pa.Schema, where: Sequence[Pick]) -> pa.Table | None:
        """Through ADBC; None where it does not find the types that were asked for."""
        queries = [_query(_what(schema), table, part) for part in self._parts(table, _condition(where))]
        try:
            while len(self._fast) < len(queries):
                driver = adbc_driver_sqlite.connect(self._uri)
                self._fast.append((driver, adbc.AdbcConnection(driver)))
            with ThreadPoolExecutor(len(queries)) as pool:  # the driver runs without the interpreter's lock
                parts = list(pool.map(_run, [connection for _, connection in self._fast], queries))
            data = pa.concat_tables([part.rename_columns(schema.names) for part in parts])
        except (adbc.Error, pa.ArrowInvalid, OSError) as problem:  # OSError: a type that changes after the first batch
            _log.debug("%s: ADBC cannot fetch (%s); falling back to sqlite3", self.source, problem)
            return None
        return data if data.schema == schema else None

    def _python(self, query: str, schema: pa.Schema) -> pa.Table:
        """Through sqlite3, value by value: slow, but reads anything that SQLite itself can."""
        rows = self._rows(query)
        columns = zip(*rows, strict=True) if rows else ((),) * len(schema)
        return pa.table([self._column(v, f.type) for v, f in zip(columns, schema, strict=True)], schema=schema)

    def _column(self, values: Sequence[object], kind: pa.DataType) -> pa.Array:
        if not pa.types.is_integer(kind):
            return pa.array(values, kind)
        out = [whole(v) for v in values]
        self.bad_values += sum(a is None and b is not None for a, b in zip(out, values, strict=True))
        return pa.array(out, kind)

    def _rows(self, query: str) -> list[tuple[object, ...]]:
        try:
            return self._slow.execute(query).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as problem:  # a damaged name in SQLite's own message is not UTF-8
            raise SourceError(self.source, _explain(problem)) from problem

    def _open(self) -> sqlite3.Connection:
        try:
            connection = sqlite3.connect(self._uri, uri=True, timeout=_BUSY_SECONDS)
        except sqlite3.Error as problem:
            raise SourceError(self.source, _explain(problem)) from problem
        connection.text_factory = bytes
        return connection

    def _probe(self) -> dict[str, tuple[str, tuple[str, ...]]]:
        """Known tables of the file: their name in it and their known columns. Views and virtual tables may run code."""
        rows = self._rows("SELECT name, rootpage FROM sqlite_master WHERE type = 'table' AND rootpage > 0")
        roots = {_text(name): int(str(root)) for name, root in rows}
        names = {t: n for t in self._known if (n := resolve(t, roots))}
        return {t: (n, self._probe_columns(t, n, roots[n])) for t, n in names.items()}

    def _probe_columns(self, table: str, name: str, root: int) -> tuple[str, ...]:
        rows = self._rows(f"PRAGMA table_xinfo({name})")  # (place, name, type, not null, default, key, hidden)
        present = {_text(r[1]): place for place, r in enumerate(rows)}
        computed = any(r[6] for r in rows)  # such columns need not be stored, and a key is the row's number
        keys = {_text(r[1]) for r in rows if r[5]}
        stored = {} if computed else {c: place for c, place in present.items() if c not in keys}
        self._layouts[name] = root, len(rows), stored
        return tuple(c for c in self._known[table] if c in present)


def _run(connection: adbc.AdbcConnection, query: str) -> pa.Table:
    # The driver's own interface: its DBAPI layer imports pyarrow.dataset for things that nobody needs here.
    with closing(adbc.AdbcStatement(connection)) as statement:
        statement.set_options(**{"adbc.sqlite.query.batch_rows": str(_BATCH_ROWS)})
        statement.set_sql_query(query)
        stream, _ = statement.execute_query()
        return pa.RecordBatchReader.from_stream(stream).read_all()


def _whole(column: tuple[np.ndarray, np.ndarray], kind: pa.DataType) -> pa.Array:
    """A column of integers; one of texts (empty ones, as `_expression` has them) or reals of which all are null."""
    values, null = column
    if pa.types.is_binary(kind):
        return pa.Array.from_buffers(kind, len(null), [None, pa.py_buffer(bytes(4 * len(null) + 4)), pa.py_buffer(b"")])
    return numbers(values, null) if kind == pa.int64() else pa.nulls(len(null), kind)


def _what(schema: pa.Schema) -> str:
    return ", ".join(_expression(f) for f in schema)


def _expression(column: pa.Field) -> str:
    """SQL of one type for every row, never null for text and reals: ADBC settles the type on the first batch."""
    if pa.types.is_binary(column.type):
        return f"""CAST(IFNULL("{column.name}", '') AS BLOB)"""
    if pa.types.is_floating(column.type):
        return (
            f"""CASE WHEN typeof("{column.name}") IN ('real', 'integer') THEN "{column.name}" + 0.0 ELSE -9e999 END"""
        )
    return f'"{column.name}"'


def _query(what: str, table: str, where: str = "") -> str:
    return f"SELECT {what} FROM {table} NOT INDEXED" + (f" WHERE {where}" if where else "")


def _condition(where: Sequence[Pick]) -> str:
    """The picks as SQL; made of known columns and numbers only."""
    return " OR ".join(f"({_picked(pick)})" for pick in where)


def _picked(pick: Pick) -> str:
    within = f"{pick.column} IN ({', '.join(str(int(v)) for v in pick.values)})"
    return within + (f" AND end - start >= {int(pick.least_ns)}" if pick.least_ns else "")


def _uri(path: Path) -> str:
    """Read-only; and without a lock or side files where nothing says that the file is in use."""
    return f"file:{quote(str(path.resolve()))}?mode=ro" + ("" if in_use(path) else _IDLE)


def _check_header(path: Path, source: str) -> None:
    """Say in words what SQLite would only call `file is not a database` or `disk image is malformed`."""
    try:
        with path.open("rb") as file:
            head = file.read(100)
        size = path.stat().st_size
    except OSError as problem:
        raise SourceError(source, f"cannot be read ({problem.strerror or problem})") from problem
    if not head:
        raise SourceError(source, "is empty; export the report again")
    if not head.startswith(SQLITE_MAGIC[: len(head)]):
        raise SourceError(source, "is not a SQLite database")
    if len(head) < 100 or size < (expected := _expected_bytes(head)):
        wanted = f" of {expected}" if len(head) == 100 else ""
        raise SourceError(source, f"is cut short ({size}{wanted} bytes); copy it or export the report again")


def _expected_bytes(head: bytes) -> int:
    """Size of the database by its header, 0 where the header does not vouch for it."""
    page, pages = struct.unpack(">H", head[16:18])[0], struct.unpack(">I", head[28:32])[0]
    if head[24:28] != head[92:96]:
        return 0
    return int(pages) * (65536 if page == 1 else int(page))


def _explain(problem: sqlite3.Error | UnicodeDecodeError) -> str:
    text = "malformed" if isinstance(problem, UnicodeDecodeError) else str(problem)
    if "locked" in text or "busy" in text:
        return "is locked by another program; wait for its export to finish, or copy the file"
    if "malformed" in text:
        return "is a damaged SQLite database; copy it or export the report again"
    if "not a database" in text:
        return "is not a SQLite database"
    return f"cannot be read as SQLite ({text})"


def _text(name: object) -> str:
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
