"""A comparison as a Plotly figure: what grew and what shrank."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

import plotly.graph_objects as go

from tprof.present import bars, columns, units
from tprof.present.colours import PHASE, PURPOSE
from tprof.present.names import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze import Row

LARGEST: Final = 20
_NAME: Final = 48
_MANY: Final = 9.0  # times what it was: from there on a factor says more than a share
_GREW, _SHRANK = PHASE["compile"], PURPOSE["work"]


def changes(rows: Sequence[Row], keys: Sequence[str]) -> go.Figure:
    """One bar per row, to the right what grew and to the left what shrank; the first `LARGEST` are drawn.

    Args:
        rows: of one table of a comparison, the largest change first.
        keys: columns that name a row.
    """
    shown = rows[:LARGEST]
    longest = max((abs(row["change_ns"]) for row in shown), default=0)
    divisor, unit = bars.scale(longest)
    lengths = [row["change_ns"] / divisor for row in shown]
    names = [" ".join(columns.cell(key, row[key]) for key in keys if row[key] is not None) for row in shown]
    figure = go.Figure(go.Bar(
        x=lengths, y=list(range(len(shown))), orientation="h", showlegend=False, cliponaxis=False,
        marker={"color": [_GREW if length > 0 else _SHRANK for length in lengths], "line": {"width": 0}},
        text=[_said(row) for row in shown], textposition="outside",
        customdata=[escape(short(name, 120)) for name in names], hovertemplate="%{customdata}<extra></extra>",
    ))  # fmt: skip
    bars.named(figure, [escape(short(name, _NAME)) for name in names])
    bars.framed(figure, f"change, {unit}", [1.0] * len(shown), 28)
    low, high = min([*lengths, 0.0]), max([*lengths, 0.0])
    room = 0.45 * (high - low) or 1.0
    return figure.update_xaxes(range=[low - (room if low else 0), high + (room if high else 0)], rangemode="normal")


def _said(row: Row) -> str:
    """`+1.20 s, +35.0 %`, `+10.9 s, 1,093 x`; what is new or gone has no share."""
    sign = "+" if row["change_ns"] > 0 else ""
    share = row["change_share"]
    said = "" if share is None else f", {units.ratio(share + 1)}" if share > _MANY else f", {sign}{units.share(share)}"
    return f"{sign}{units.duration(row['change_ns'])}{said}"
