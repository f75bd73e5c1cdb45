"""Results for programs: JSON, CSV and Parquet. Full names, integers, every column; nothing is shortened."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any, Final

from tprof.errors import UsageError
from tprof.events import SCHEMA_VERSION
from tprof.present import views

if TYPE_CHECKING:
    import pyarrow as pa

    from tprof.analyze import Result

# A spreadsheet runs a cell that begins with one of these; a quote before it makes it text.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def payload(result: Result) -> dict[str, Any]:
    """What `--format json` prints, as a dict."""
    return {
        "schema_version": SCHEMA_VERSION,
        "sources": result.sources,
        "warnings": [note.to_dict() for note in result.notes],
        **result.to_dict(),
    }


def json_text(result: Result) -> str:
    """The payload as JSON: ASCII only, so that no name can break a terminal or an encoding."""
    return json.dumps(payload(result), indent=2, allow_nan=False)


def csv_text(result: Result, table: str | None = None) -> str:
    """One table as CSV; text that a spreadsheet would run as a formula gets a leading quote.

    Args:
        result: where the table is.
        table: its name; the first if None.

    Raises:
        UsageError: the result has no such table.
    """
    name = pick(result, table)
    out = io.StringIO()
    writer = csv.DictWriter(out, _keys(result, name), restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: _csv_cell(v) for k, v in row.items()} for row in _flat(result.tables[name]))
    return out.getvalue()


def arrow(result: Result, table: str | None = None) -> pa.Table:
    """One table as Arrow: `_ns` and counts are int64, `_share` float64; values that are not flat become JSON text."""
    import pyarrow as pa  # noqa: PLC0415  only for Parquet

    name = pick(result, table)
    rows, keys = _flat(result.tables[name]), _keys(result, name)
    fields = [(key, _arrow_type(pa, key)) for key in keys]
    arrays = [pa.array([row.get(key) for row in rows], kind) for key, kind in fields]
    return pa.Table.from_arrays(arrays, names=keys)


def parquet_bytes(result: Result, table: str | None = None) -> bytes:
    """One table as a Parquet file."""
    import pyarrow.parquet as pq  # noqa: PLC0415  only for Parquet

    out = io.BytesIO()
    pq.write_table(arrow(result, table), out)
    return out.getvalue()


def pick(result: Result, table: str | None) -> str:
    """Name of a table of the result: the first if none is asked for.

    Raises:
        UsageError: the result has no such table.
    """
    if table is None:
        return next(iter(result.tables))
    if table not in result.tables:
        raise UsageError(f"{result.title} has no table {table!r}; it has {', '.join(result.tables)}")
    return table


def _keys(result: Result, table: str) -> list[str]:
    """Columns in order of first appearance; those of the view where there are no rows."""
    found = dict.fromkeys(k for row in result.tables[table] for k in row)
    return list(found) or [c.key for c in views.view(result, table).columns]


def _flat(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {k: json.dumps(v) if isinstance(v, (dict, list)) else _encodable(v) for k, v in row.items()} for row in rows
    ]


def _encodable(value: Any) -> Any:
    """Text that UTF-8 can carry: a lone surrogate is replaced."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) and not value.isascii() else value


def _csv_cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _arrow_type(pa: Any, key: str) -> Any:
    if key.endswith("_ns"):
        return pa.int64()
    return pa.float64() if key.endswith("share") else None
