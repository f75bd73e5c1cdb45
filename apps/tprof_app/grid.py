"""Rows of a result as a table: a unit in every heading, and foreign text as text, for a canvas draws it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import streamlit as st

from tprof.present.columns import EDGES, Column, cell, shown
from tprof.present.words import MEANING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze.result import Row

_SCALES: Final = {
    "ns": ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")),
    "bytes": ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")),
}  # fmt: skip
_FINE: Final = 1e-3  # of the unit: what three decimals still show


def grid(rows: Sequence[Row], columns: Sequence[Column], *, or_load: bool = False) -> tuple[pa.Table, dict[str, Any]]:
    """Data and column configuration for `st.dataframe`.

    Args:
        rows: of a result.
        columns: of its view; those that would say nothing are left out.
        or_load: `compile` cannot be told from loading.
    """
    kept = shown(columns, rows)
    made = {c.key: _column(c, [row.get(c.key) for row in rows], or_load=or_load) for c in kept}
    return pa.table({key: data for key, (data, _) in made.items()}), {key: said for key, (_, said) in made.items()}


def _column(column: Column, values: list[Any], *, or_load: bool) -> tuple[pa.Array, Any]:
    key, heading = column.key, column.heading
    if (scales := _SCALES.get(key.rpartition("_")[2])) is not None and key not in EDGES:
        return _scaled(values, heading, scales)
    if key.endswith(("_share", "_ratio")):
        return pa.array(values, pa.float64()), _part(key, heading)
    if key.endswith("_slice"):
        return pa.array(values), st.column_config.BarChartColumn(heading)
    if column.numeric and key not in EDGES and all(v is None or isinstance(v, (int, float)) for v in values):
        return pa.array(values), st.column_config.NumberColumn(heading, format="localized")
    texts = [None if v is None else json.dumps(v) if isinstance(v, (dict, list)) else v for v in values]
    written = [None if v is None else cell(key, v, or_load=or_load) for v in texts]
    return pa.array(written, pa.string()), st.column_config.TextColumn(heading, help=MEANING.get(key))


def _part(key: str, heading: str) -> Any:
    """A share, which is a part of one unless it is a change; or how many times."""
    if key.endswith("_ratio"):
        return st.column_config.NumberColumn(f"{heading}, x", format="%.2f")
    if key == "change_share":
        return st.column_config.NumberColumn(f"{heading}, %", format="percent")
    return st.column_config.ProgressColumn(f"{heading}, %", format="percent", min_value=0.0, max_value=1.0)


def _scaled(values: list[Any], heading: str, scales: Sequence[tuple[int, str]]) -> tuple[pa.Array, Any]:
    """In the largest unit in which the least value still shows with three decimals, and the largest is one or more."""
    sizes = [abs(v) for v in values if v] or [1]
    usable = [s for s in scales if max(sizes) >= s[0]] or [scales[-1]]
    divisor, unit = next((s for s in usable if min(sizes) >= s[0] * _FINE), usable[-1])
    data = pa.array([None if v is None else v / divisor for v in values], pa.float64())
    whole = "%.0f" if divisor == 1 else "%.3f"
    return data, st.column_config.NumberColumn(f"{heading}, {unit}", format=whole)
