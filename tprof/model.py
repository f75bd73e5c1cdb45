"""A `Trace`: a few Arrow tables that obey the schema of `events`, what the producer said of itself, and warnings.

Nothing here computes. Readers build one with `table(...)` per table; transforms return a changed copy with
`dataclasses.replace`. Inside tprof, columns are taken as numpy arrays (`ints`, `codes`); users get DataFrames.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tprof.events import TABLES, Column, Note
from tprof.machine import Native

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd

_TYPES = {
    "int64": pa.int64(),
    "int32": pa.int32(),
    "float64": pa.float64(),
    "bool": pa.bool_(),
    "string": pa.string(),
    "label": pa.dictionary(pa.int32(), pa.string()),
    "int3": pa.list_(pa.int32(), 3),
}
_DENSE = 8  # values per row up to which a table of all of them is no larger than what sorting needs
_WORTH_HASHING = 1 << 18  # rows from which on sorting costs more than importing pandas, at some columns in a row
_FEW = 1 << 14  # places of a table that stays in a processor's cache
_NUMBER = Native("tprof.machine.sweep", "number_pairs", ("int64[::1]",) * 4, 1 << 18, 1 << 24)
NULL = -1  # what `ints` and `codes` show for a null
TIME_LIMIT = 1 << 62  # ns; times beyond are none: the difference of two others always fits an int64


def within(times: np.ndarray) -> np.ndarray:
    """Which times (ns) can be ones: of two of them the difference fits an int64."""
    return (times > -TIME_LIMIT) & (times < TIME_LIMIT)


def schema(name: str) -> pa.Schema:
    """Arrow schema of one of `events.TABLES`."""
    return pa.schema([pa.field(c.name, _TYPES[c.dtype], nullable=c.nullable) for c in TABLES[name]])


def table(name: str, columns: Mapping[str, object] | None = None, rows: int | None = None) -> pa.Table:
    """Build one table of the schema.

    Args:
        name: key of `events.TABLES`.
        columns: numpy arrays, Arrow arrays, lists, or a scalar for every row; a missing nullable column is all null.
        rows: number of rows; needed only where no column has a length.

    Raises:
        ValueError: a column that the schema does not have, or a required one that is missing.
    """
    given = dict(columns or {})
    if unknown := set(given) - {c.name for c in TABLES[name]}:
        raise ValueError(f"table {name} has no column {sorted(unknown)}")
    if rows is None:
        rows = next((len(v) for v in given.values() if hasattr(v, "__len__") and not isinstance(v, str)), 0)
    arrays = [_column(name, c, given.get(c.name), rows) for c in TABLES[name]]
    return pa.Table.from_arrays(arrays, schema=schema(name))


def _column(table_name: str, column: Column, value: Any, rows: int) -> pa.Array | pa.ChunkedArray:
    kind = _TYPES[column.dtype]
    if value is None:
        if not column.nullable and rows:
            raise ValueError(f"table {table_name} needs column {column.name}")
        return _nulls(rows, kind)
    if isinstance(value, (pa.Array, pa.ChunkedArray)):
        return value if value.type == kind else value.cast(kind)
    if isinstance(value, (str, int)):
        return _repeated(column, value, rows)
    array = _array(value, kind)
    if column.dtype == "label" and not isinstance(value, np.ndarray):
        array = array.dictionary_encode()
    return array if array.type == kind else array.cast(kind)


def _nulls(rows: int, kind: pa.DataType) -> pa.Array:
    """As `pa.nulls`, of memory that is not touched: many columns of a large trace are empty."""
    if pa.types.is_dictionary(kind):
        return pa.DictionaryArray.from_arrays(_nulls(rows, kind.index_type), pa.nulls(0, kind.value_type))
    if not pa.types.is_primitive(kind):
        return pa.nulls(rows, kind)
    content = pa.py_buffer(np.zeros(rows * kind.bit_width // 8 + 1, np.uint8))
    return pa.Array.from_buffers(kind, rows, [content, content], null_count=rows)


def _repeated(column: Column, value: str | int, rows: int) -> pa.Array:
    """One value for every row."""
    if column.dtype == "label":
        return labels(np.zeros(rows, np.int32), [str(value)])
    return texts([value] * rows) if isinstance(value, str) else numbers(np.full(rows, value)).cast(_TYPES[column.dtype])


def _array(value: Any, kind: pa.DataType) -> pa.Array:
    """A numpy array or a list as the Arrow type that is nearest to it, or as `kind`."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return numbers(value)
    if isinstance(value, list) and kind in (_TYPES["string"], _TYPES["label"]):
        return texts(value)
    if isinstance(value, list) and kind in (_TYPES["int64"], _TYPES["int32"], _TYPES["bool"]):
        missing = np.array([item is None for item in value], bool)
        dtype = bool if kind == _TYPES["bool"] else np.int64
        return numbers(np.array([item or 0 for item in value], dtype), missing)
    return pa.array(value, pa.string() if pa.types.is_dictionary(kind) else kind)


# Where pandas is installed, `pa.array`, `fill_null` and `to_numpy` import it: 0.3 s and 40 MB. Hence the buffers.


def spare_pandas() -> None:
    """Keep pyarrow from importing pandas, only to ask whether what it is given is of pandas.

    For processes that are tprof's alone: `pyarrow.Table.to_pandas` fails in them afterwards.
    """
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _WithoutPandas)
        pa.scalar(0)  # pyarrow looks for it once
        sys.meta_path.remove(_WithoutPandas)


class _WithoutPandas:
    """An importer to which pandas is not installed."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def numbers(values: np.ndarray, missing: np.ndarray | None = None) -> pa.Array:
    """Numbers or bools (shape (rows,)), not copied; null where `missing` holds."""
    valid = _bits(~missing) if missing is not None and missing.any() else None
    content = _bits(values) if values.dtype == bool else pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [valid, content])


def texts(values: Sequence[str | None]) -> pa.StringArray:
    """Strings; null where they are None."""
    encoded = [value.encode() if value else b"" for value in values]
    ends = np.cumsum([0, *map(len, encoded)])
    if ends[-1] >= 1 << 31:
        return pa.array(values, pa.string())  # which says what is wrong
    missing = np.array([value is None for value in values], bool)
    offsets, content = pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(len(encoded), offsets, content, _bits(~missing) if missing.any() else None)


def spelled(code: np.ndarray, values: Sequence[str]) -> pa.StringArray:
    """The strings that codes (shape (rows,), -1 is null) point to, written out: for columns that are mostly null.

    (Arrow's own cast of a dictionary reserves 200 bytes a row.)
    """
    encoded = [value.encode() for value in values]
    known = code >= 0
    size = np.where(known, np.array([*map(len, encoded), 0])[code], 0)
    content = pa.py_buffer(b"".join([encoded[c] for c in code[known].tolist()]))
    ends = pa.py_buffer(np.concatenate([[0], np.cumsum(size)]).astype(np.int32))
    return pa.StringArray.from_buffers(len(code), ends, content, None if known.all() else _bits(known))


def _bits(values: np.ndarray) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))


def _unpacked(bits: pa.Buffer, array: pa.Array) -> np.ndarray:
    found = np.unpackbits(np.frombuffer(bits, np.uint8), count=array.offset + len(array), bitorder="little")
    return found[array.offset :].view(bool)


def _values(array: pa.Array) -> np.ndarray:
    """Numbers or bools, not copied where that is possible; nulls are -1."""
    if array.null_count == len(array):
        return np.full(len(array), NULL)
    valid, content = array.buffers()
    if pa.types.is_boolean(array.type):
        found = _unpacked(content, array).astype(np.int64)
    else:
        found = np.frombuffer(content, array.type.to_pandas_dtype(), array.offset + len(array))[array.offset :]
    return np.where(_unpacked(valid, array), found, found.dtype.type(NULL)) if array.null_count else found


def labels(code: np.ndarray, values: Sequence[str]) -> pa.DictionaryArray:
    """Dictionary-encoded strings from codes (shape (rows,), -1 is null) and the values they point to."""
    code = np.asarray(code, np.int32)
    return pa.DictionaryArray.from_arrays(numbers(code, code < 0), texts(values))


def nullable(values: np.ndarray, null: int = NULL) -> pa.Array:
    """Integers (shape (rows,)) in which `null` marks what is not known."""
    return numbers(np.asarray(values), np.asarray(values) == null)


def put(data: pa.Table, **columns: np.ndarray | pa.Array | pa.ChunkedArray) -> pa.Table:
    """A table with other values in some of its columns; in integers, NULL marks what is not known."""
    for name, values in columns.items():
        field = data.schema.field(name)
        array = nullable(values) if isinstance(values, np.ndarray) else values
        array = array if array.type == field.type else array.cast(field.type)
        data = data.set_column(data.schema.get_field_index(name), field, array)
    return data


def triples(values: np.ndarray, missing: np.ndarray | None = None) -> pa.FixedSizeListArray:
    """Grid or block sizes, shape (rows, 3); rows where `missing` holds are null."""
    flat = numbers(np.ascontiguousarray(values, np.int32).reshape(-1))
    return pa.FixedSizeListArray.from_arrays(flat, 3, mask=None if missing is None else numbers(missing))


def ints(data: pa.Table, name: str) -> np.ndarray:
    """An integer or bool column as int64, shape (rows,); nulls are -1."""
    found = [_values(chunk).astype(np.int64, copy=False) for chunk in data[name].chunks]
    return found[0] if len(found) == 1 else np.concatenate([*found, np.empty(0, np.int64)])


def codes(data: pa.Table, name: str) -> tuple[np.ndarray, list[str]]:
    """Labels or texts as (codes, values): codes int32 of shape (rows,), -1 for null, pointing into values."""
    column = data[name].dictionary_encode().unify_dictionaries().combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # no chunks at all: an empty table
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    return _values(column.indices).astype(np.int32, copy=False), column.dictionary.to_pylist()


def refine(key: np.ndarray, part: np.ndarray) -> np.ndarray:
    """Codes 0, 1, … that tell apart what either column of integers tells apart, in order of first occurrence."""
    if call := _NUMBER.choose(len(key)):
        return _hashed(call, key, part)
    inner, key = _numbered(part), key.astype(np.int64, copy=False)
    count = int(inner.max(initial=0)) + 1
    return _numbered(key * count + inner if count > 1 else key)


def _hashed(call: Callable[..., int], key: np.ndarray, part: np.ndarray) -> np.ndarray:
    """`refine` by machine code: a small table first, since most columns have few values."""
    columns, out = [np.ascontiguousarray(c, np.int64) for c in (key, part)], np.empty(len(key), np.int64)
    if call(*columns, np.full(_FEW, NULL), out) < 0:
        call(*columns, np.full(2 << len(key).bit_length(), NULL), out)
    return out


def first_rows(code: np.ndarray) -> np.ndarray:
    """First row of each code, of codes as `refine` numbers them."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(code), prepend=-1))


def distinct(values: np.ndarray) -> np.ndarray:
    """The distinct integers, sorted; without a sort or a hash where few lie between the least and the largest."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if high - low >= _DENSE * len(values):
        return np.unique(values)
    seen = np.zeros(high - low + 1, bool)
    seen[values - low] = True
    return np.flatnonzero(seen) + low


def _numbered(values: np.ndarray) -> np.ndarray:
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    if low == high:
        return np.zeros(len(values), np.int64)
    if high - low < _DENSE * len(values):  # a table of all values between: three passes, no sort
        first = np.full(high - low + 1, len(values))
        first[values[::-1] - low] = np.arange(len(values))[::-1]  # of several writes the last stays: the first row
        rows = np.sort(first[first < len(values)])
        first[values[rows] - low] = np.arange(len(rows))
        return first[values - low]
    if len(values) < _WORTH_HASHING:
        _, first, inverse = np.unique(values, return_index=True, return_inverse=True)
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        return rank[inverse]
    import pandas as pd  # noqa: PLC0415  importing it takes as long as sorting a million numbers

    return pd.factorize(values)[0].astype(np.int64)


def int3(data: pa.Table, name: str) -> np.ndarray:
    """A grid or block column, shape (rows, 3) int32; nulls are -1."""
    column = data[name].combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.nulls(0, column.type)
    whole = column.values  # noqa: PD011  Arrow's: of all rows of what the column is a part of, also where it is null
    out = np.full((len(column), 3), NULL, np.int32)
    if column.null_count < len(column):
        known = _values(whole).reshape(-1, 3)[column.offset : column.offset + len(column)]
        valid = _values(column.is_valid()).astype(bool)
        np.copyto(out, known, where=valid[:, None])
    return out


@dataclass(frozen=True)
class Trace:
    """Everything known of one or more recordings, on one clock.

    Attributes:
        host, device, processes, threads, devices, sources: tables of `events.TABLES`, as read.
        spans, candidates, compiles: the same, as recorded and as `align` finds them.
        specializations, graph_events, graph_nodes, startup, shape_keys: the same, where recorded.
        epoch_ns: UTC time of the clock's zero in ns, or None where no source says.
        epoch_error_ns: bound of that time's error in ns, or None where it is not known.
        notes: warnings.
        meta: what else the producers said of themselves.
    """

    host: pa.Table
    device: pa.Table
    processes: pa.Table
    threads: pa.Table
    devices: pa.Table
    sources: pa.Table
    spans: pa.Table = field(default_factory=lambda: table("spans"))
    candidates: pa.Table = field(default_factory=lambda: table("candidates"))
    compiles: pa.Table = field(default_factory=lambda: table("compiles"))
    specializations: pa.Table = field(default_factory=lambda: table("specializations"))
    graph_events: pa.Table = field(default_factory=lambda: table("graph_events"))
    graph_nodes: pa.Table = field(default_factory=lambda: table("graph_nodes"))
    startup: pa.Table = field(default_factory=lambda: table("startup"))
    shape_keys: pa.Table = field(default_factory=lambda: table("shape_keys"))
    epoch_ns: int | None = None
    epoch_error_ns: int | None = None
    notes: tuple[Note, ...] = ()
    meta: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    def frame(self, name: str) -> pd.DataFrame:
        """One table as a DataFrame with Arrow dtypes (a nullable integer never becomes a float)."""
        import pandas as pd  # noqa: PLC0415  pandas costs 0.4 s; commands that only print JSON do without

        if name not in TABLES:
            raise KeyError(f"no table {name!r}; a trace has {', '.join(TABLES)}")
        data: pa.Table = getattr(self, name)
        return data.to_pandas(types_mapper=pd.ArrowDtype)

    def __repr__(self) -> str:
        """Rows per table."""
        sizes = ", ".join(f"{f.name}={getattr(self, f.name).num_rows}" for f in fields(self) if f.name in TABLES)
        return f"Trace({sizes})"
