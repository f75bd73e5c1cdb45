"""Tables of the page. A unit is in every heading; text is drawn on a canvas, so foreign names need no escape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from tprof.present.names import clean
from tprof.present.words import label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze.result import Row


def _ms(heading: str, said: str = "") -> Any:
    return st.column_config.NumberColumn(f"{heading}, ms", format="%.3f", help=said or None)


def _show(rows: Sequence[Row], columns: dict[str, Any], key: str) -> None:
    st.dataframe(pd.DataFrame(rows, columns=list(columns)), column_config=columns, hide_index=True, key=key)


def _shown(row: Row, *, or_load: bool = False) -> Row:
    """A row with milliseconds for nanoseconds, phases as people say them, and text on one line."""
    return {key: _value(key, value, or_load=or_load) for key, value in row.items()}


def _value(key: str, value: object, *, or_load: bool) -> object:
    if isinstance(value, str):
        return label(value, or_load=or_load) if key in {"mostly", "phase"} else clean(value)
    return value / 1e6 if key.endswith("_ns") and isinstance(value, int) else value


def requests(rows: Sequence[Row], *, or_load: bool) -> None:
    """Budgets: the flat rows of a summary, in time order."""
    columns = {
        "name": st.column_config.TextColumn("request", width="medium"),
        "wall_ns": _ms("wall"),
        "cold_share": st.column_config.ProgressColumn("cold tax, share of wall", format="percent", max_value=1.0),
        "cold_tax_ns": _ms("cold tax"),
        "cold_exposed_ns": _ms("exposed", "Cold while no device did work"),
        "device_work_ns": _ms("device work", "Device time of what the request launched"),
        "device_tuning_ns": _ms("device tuning", "Device time of benchmark repetitions and cache flushes"),
        "mostly": "largest phase",
        "basis": st.column_config.TextColumn("basis", help="Whether the cold part was recorded or inferred"),
    }
    _show([_shown(row, or_load=or_load) for row in rows], columns, "requests-table")


def gaps(rows: Sequence[Row], *, or_load: bool) -> None:
    """Longest stretches without device work, with where they lie in the window."""
    columns = {
        "gap_ns": _ms("length"),
        "at_ns": _ms("begins", "From the start of the window"),
        "phase": st.column_config.TextColumn("mostly", help="The phase that took most of the gap"),
        "where": "where",
        "ended_by": st.column_config.TextColumn("ended by", help="The device event at its end", width="medium"),
        "thread": "launching thread",
        "basis": "basis",
    }
    _show([_shown(row, or_load=or_load) for row in rows], columns, "gaps-table")


def sources(rows: Sequence[Row]) -> None:
    """What was read, one row per file."""
    columns = {
        "path": st.column_config.TextColumn("file", width="large"),
        "format": "format",
        "producer": "producer",
        "version": "version",
        "rows_read": st.column_config.NumberColumn("events", format="localized"),
        "rows_dropped": st.column_config.NumberColumn("lost", format="localized"),
    }
    _show([_shown(row) for row in rows], columns, "sources-table")
