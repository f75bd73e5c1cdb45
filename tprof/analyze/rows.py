"""Rows of a trace as several analyses ask for them: by label, by window, in groups, as recorded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from tprof.align.calls import is_kind
from tprof.align.ranges import looked_up
from tprof.events import COLD_PHASES
from tprof.model import codes

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    import pyarrow as pa

    from tprof.analyze.result import Row
    from tprof.model import Trace

_COLUMNS = ["start_ns", "end_ns", "thread", "pid", "name", "request", "attrs"]


def labelled(
    data: pa.Table, column: str, wanted: Container[str] | Callable[[str], bool], rows: np.ndarray | None = None
) -> np.ndarray:
    """Which rows (default: all; -1 is none) have a label that is wanted, shape (rows,) bool."""
    code, names = codes(data, column)
    test = wanted if callable(wanted) else wanted.__contains__
    return np.array([*map(test, names), False], bool)[code if rows is None else looked_up(code, rows)]


def grouped(rows: Iterable[Row], *keys: str) -> dict[Any, list[Row]]:
    """Rows by the values of some columns (a tuple, if there are several), in order of first occurrence."""
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[keys[0]] if len(keys) == 1 else tuple(row[key] for key in keys), []).append(row)
    return found


def rows_inside(trace: Trace, table: str, window: tuple[int, int]) -> list[Row]:
    """Rows of `compiles` or `candidates` that end inside the window, each with its place in the table as `row`."""
    return [
        {"row": i, **r}
        for i, r in enumerate(getattr(trace, table).to_pylist())
        if window[0] < r["end_ns"] <= window[1] or (r["end_ns"] == window[0] == r["start_ns"])
    ]


def cold_spans(trace: Trace, window: tuple[int, int]) -> list[Row]:
    """Exclusive cold spans that reach into the window, clipped to it."""
    low, high = window
    return [
        {**row, "start_ns": max(row["start_ns"], low), "end_ns": min(row["end_ns"], high)}
        for row in trace.spans.to_pylist()
        if row["phase"] in COLD_PHASES and row["end_ns"] > low and row["start_ns"] < high
    ]


def recorded_spans(trace: Trace, *kinds: str) -> list[Row]:
    """Recorded cold spans of some kinds (`jit`, `cache`, `autotune` …, docs/run-directory.md), else all, in row order.

    Returns:
        start_ns, end_ns, thread, pid, name, request (row of `host`), kind, and what else the recorder said as `attrs`.
    """
    rows = trace.host.filter(is_kind(trace.host, "cold")).select(_COLUMNS).to_pylist()
    said = [{**row, "attrs": json.loads(row["attrs"] or "{}")} for row in rows]
    return [
        {**row, "kind": kind} for row in said if (kind := row["attrs"].get("kind")) and (not kinds or kind in kinds)
    ]


def percentile(ordered: np.ndarray, percent: int) -> int | None:
    """The smallest value that at least `percent` of all do not exceed (nearest rank), None of nothing.

    Args:
        ordered: ascending values, shape (n,).
        percent: 1 to 100.
    """
    return int(ordered[-(-percent * len(ordered) // 100) - 1]) if len(ordered) else None
