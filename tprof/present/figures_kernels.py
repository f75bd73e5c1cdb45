"""Kernels as Plotly figures: the largest by purpose, and how long executions of one take."""

from __future__ import annotations

from html import escape
from math import log10
from typing import TYPE_CHECKING, Final

import plotly.graph_objects as go

from tprof.events import PURPOSES
from tprof.present import bars, names, units
from tprof.present.colours import PURPOSE
from tprof.present.words import label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze import Row

LARGEST: Final = 20
_NAME: Final = 48


def largest(rows: Sequence[Row]) -> go.Figure:
    """One bar per row of `kernels`, its colour is the purpose; the first `LARGEST` are drawn."""
    shown = rows[:LARGEST]
    divisor, unit = bars.scale(max((row["total_ns"] for row in shown), default=0))
    ends = [row["total_ns"] / divisor for row in shown]
    figure = go.Figure()
    for purpose in (p for p in PURPOSES if any(row["purpose"] == p for row in shown)):
        mine = [i for i, row in enumerate(shown) if row["purpose"] == purpose]
        figure.add_bar(
            x=[ends[i] for i in mine], y=mine, orientation="h", name=label(purpose), showlegend=True,
            marker={"color": PURPOSE[purpose], "line": {"width": 0}},
            customdata=[[escape(names.short(shown[i]["name"], 120)), f"{shown[i]['total_ns']:,}"] for i in mine],
            hovertemplate=f"<b>%{{customdata[0]}}</b><br>{label(purpose)}, %{{customdata[1]}} ns<extra></extra>",
        )  # fmt: skip
    figure.add_trace(bars.written([_said(row) for row in shown], ends))
    bars.named(figure, [escape(names.kernel(row["name"], _NAME)) for row in shown])
    return bars.framed(figure, f"device time, {unit}", ends, 26)


def _said(row: Row) -> str:
    return f"{units.duration(row['total_ns'])}, {units.share(row['of_device_share'])}, {row['path']}"


def durations(rows: Sequence[Row]) -> go.Figure:
    """Executions by how long they took; several purposes side by side, on a logarithmic axis.

    Args:
        rows: `durations` of kernels that were asked for.
    """
    purposes = [purpose for purpose in PURPOSES if any(row[purpose] for row in rows)]
    figure = go.Figure()
    for purpose in purposes:
        figure.add_bar(
            x=list(range(len(rows))), y=[row[purpose] for row in rows], name=label(purpose), showlegend=True,
            marker={"color": PURPOSE[purpose], "line": {"width": 0}},
            customdata=[[units.duration(row["from_ns"]), units.duration(row["below_ns"])] for row in rows],
            hovertemplate=f"<b>%{{y:,}} for {label(purpose)}</b><br>%{{customdata[0]}} to %{{customdata[1]}}"
            "<extra></extra>",
        )  # fmt: skip
    every = max(len(rows) // 8, 1)
    ticks = [units.duration(row["from_ns"]) for row in rows[::every]]
    figure.update_xaxes(
        title_text="time of an execution, from", tickvals=list(range(0, len(rows), every)), ticktext=ticks
    )
    if len(purposes) > 1:
        most = max(row[purpose] for row in rows for purpose in purposes)
        figure.update_yaxes(type="log", dtick=1, range=[log10(0.5), log10(2 * most)])  # one execution is a bar, too
    figure.update_yaxes(title_text="executions")
    return bars.plain(figure, 320, barmode="group", bargap=0.05)
