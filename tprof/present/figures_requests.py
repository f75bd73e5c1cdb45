"""Latency of requests as a Plotly figure: percentiles with and without cold start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import plotly.graph_objects as go

from tprof.present import units
from tprof.present.bars import plain
from tprof.present.colours import PHASE, PURPOSE
from tprof.present.log_axis import decades

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze import Row

_RANKS: Final = ("p50", "p95", "p99", "max")
_DRAWN: Final = {
    "all": ("diamond", PHASE["compile"]),
    "less cold tax": ("circle-open", PHASE["launch"]),
    "warm only": ("circle", PURPOSE["work"]),
}


def latency(rows: Sequence[Row]) -> go.Figure:
    """Percentiles of one group of requests, on a logarithmic axis.

    Args:
        rows: `latency` of one name: all, less cold tax, warm only.
    """
    figure = go.Figure()
    every: list[int] = []
    for row in (row for row in rows if row["n"]):
        values = [(rank, row[f"{rank}_ns"]) for rank in _RANKS if row[f"{rank}_ns"]]
        every += [ns for _, ns in values]
        symbol, colour = _DRAWN[row["of"]]
        figure.add_scatter(
            x=[ns for _, ns in values], y=[rank for rank, _ in values], mode="lines+markers",
            name=f"{row['of']} ({units.count(row['n'])})", line={"width": 1, "color": colour, "dash": "dot"},
            marker={"symbol": symbol, "size": 13, "color": colour, "line": {"width": 2, "color": colour}},
            text=[f"{rank} of {row['of']}: {units.duration(ns)}" for rank, ns in values],
            hovertemplate="%{text}<extra></extra>", showlegend=True,
        )  # fmt: skip
    figure.update_xaxes(title_text="wall time of a request", **decades(every))
    figure.update_yaxes(type="category", categoryarray=_RANKS, autorange="reversed")
    return plain(figure, 300, hoverlabel={"align": "left"}).update_layout(margin_r=20)
