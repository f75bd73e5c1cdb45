"""Readers as slow and as plain as can be: one event, one row at a time, with Python's own numbers."""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from contextlib import closing
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

Totals = dict[str, tuple[int, int]]  # kind of device work -> events, and the sum of their lengths, ns
_TORCH = {"kernel": "kernel", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
_NSIGHT = {"CUPTI_ACTIVITY_KIND_KERNEL": "kernel", "CUPTI_ACTIVITY_KIND_MEMCPY": "memcpy",
           "CUPTI_ACTIVITY_KIND_MEMSET": "memset", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": "graph"}  # fmt: skip
_REQUIRED = ("start", "end", "deviceId", "streamId", "globalPid")
_LIMIT = 1 << 62  # ns; later times are said to be left out
_INT64 = range(-(2**63), 2**63)


def _totals(rows: list[tuple[str, int]]) -> Totals:
    found: dict[str, list[int]] = defaultdict(list)
    for kind, length in rows:
        found[kind].append(length)
    return {kind: (len(lengths), sum(lengths)) for kind, lengths in found.items()}


# ---- torch.profiler


def torch(text: bytes) -> Totals | None:
    """Device work of a document that is JSON as it should be; None where it is not."""
    try:
        document = json.loads(text, parse_float=str, parse_constant=_refused)
        text.decode().encode()
    except (ValueError, RecursionError):
        return None
    events = document.get("traceEvents") if isinstance(document, dict) else document
    if not isinstance(events, list) or not all(isinstance(e, dict) for e in events):
        return None
    found = [(_TORCH[e["cat"]], times) for e in events if _is_device(e) and (times := _times(e))]
    return _totals([(kind, end - start) for kind, (start, end) in found])


def _refused(constant: str) -> Any:
    raise ValueError(constant)


def _is_device(event: dict[str, Any]) -> bool:
    return event.get("ph") == "X" and isinstance(event.get("cat"), str) and event["cat"] in _TORCH


def _times(event: dict[str, Any]) -> tuple[int, int] | None:
    start, length = _ns(event.get("ts")), _ns(event.get("dur", 0))
    if start is None or length is None or length < 0 or start + length not in _INT64 or start == length == 0:
        return None
    return start, start + length


def _ns(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        number = Decimal(value) * 1000
        found = int(number.to_integral_value(ROUND_FLOOR)) if number.is_finite() and abs(number) < 2**63 else None
    except InvalidOperation:
        return None
    return found


# ---- Nsight


def nsight(path: Path) -> Totals | None:
    """Device work of a database; None where SQLite finds it damaged."""
    rows: list[tuple[str, int]] = []
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
            db.text_factory = bytes
            for table, kind in _NSIGHT.items():
                rows += [(kind, length) for length in _lengths(db, table)]
    except (sqlite3.Error, UnicodeDecodeError):
        return None
    return _totals(rows)


def _lengths(db: sqlite3.Connection, table: str) -> list[int]:
    known = db.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND rootpage > 0 AND name = ?", (table,))
    if known.fetchone() is None:
        if db.execute("SELECT 1 FROM sqlite_master WHERE name LIKE ?", (f"{table}_V%",)).fetchone():
            raise sqlite3.Error("a table under another name: not for this reader")
        return []
    cursor = db.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in cursor.description]
    if not {*_REQUIRED} <= {*names}:
        return []
    found = [[_whole(dict(zip(names, row, strict=True))[name]) for name in _REQUIRED] for row in cursor]
    whole = [row for row in found if None not in row]
    least = 1 if table.endswith("KERNEL") else 1 - _LIMIT  # a kernel that never began
    return [end - start for start, end, *_ in whole if least <= start <= end < _LIMIT]


def _whole(value: Any) -> int | None:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value if isinstance(value, int) else None
