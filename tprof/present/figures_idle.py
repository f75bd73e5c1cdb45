"""Idle time as Plotly figures: devices side by side, and how long the gaps are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import plotly.graph_objects as go

from tprof.events import PHASES
from tprof.present import bars, units
from tprof.present.bars import Piece
from tprof.present.colours import PHASE
from tprof.present.figures import WHERE
from tprof.present.words import label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze import Row


def by_device(rows: Sequence[Row], *, or_load: bool = False) -> go.Figure:
    """One bar per device: its time without device work by phase.

    Args:
        rows: `phases` of the idle analysis of several devices.
        or_load: `compile` cannot be told from loading.
    """
    names = list(dict.fromkeys(row["device"] for row in rows))
    ranked = sorted(rows, key=lambda row: (PHASES.index(row["phase"]), row["where"], row["basis"]))
    place = [names.index(row["device"]) for row in ranked]
    ends = [sum(row["total_ns"] for row in rows if row["device"] == name) for name in names]
    pieces = [
        Piece(bar, WHERE[row["where"]], row["phase"], row["basis"], row["total_ns"],
              100 * row["total_ns"] / max(ends[bar], 1), "the device's time without work")
        for bar, row in zip(place, ranked, strict=True)
    ]  # fmt: skip
    divisor, unit = bars.scale(max(ends, default=0))
    figure = bars.stacked(
        pieces, [p.ns / divisor for p in pieces], [f"device {name}" for name in names], inside=" ", or_load=or_load
    )
    figure.add_trace(bars.written([units.duration(end) for end in ends], [end / divisor for end in ends]))
    return bars.framed(figure, f"time without device work, {unit}", [end / divisor for end in ends], 40)


def lengths(rows: Sequence[Row], *, count: bool = False, or_load: bool = False) -> go.Figure:
    """Gaps of one device by their length, in decades.

    Args:
        rows: `lengths` of the idle analysis of one device.
        count: how many gaps there are, instead of their time by phase.
        or_load: `compile` cannot be told from loading.
    """
    names = [f"{units.duration(row['from_ns'])} to {units.duration(row['below_ns'])}" for row in rows]
    if count:
        numbers = [row["gaps"] for row in rows]
        bar = go.Bar(
            x=names, y=numbers, text=[units.count(n) for n in numbers], textposition="outside", cliponaxis=False,
            marker={"color": PHASE["host"]}, hoverinfo="skip", showlegend=False,
        )  # fmt: skip
        return _framed(go.Figure(bar), "gaps").update_yaxes(type="log", dtick=1)
    divisor, unit = bars.scale(max((row["total_ns"] for row in rows), default=0))
    figure = go.Figure()
    for phase in (p for p in PHASES if any(row[f"{p}_ns"] for row in rows)):
        spent, said = [row[f"{phase}_ns"] for row in rows], label(phase, or_load=or_load)
        figure.add_bar(
            x=names, y=[ns / divisor for ns in spent], name=said, marker={"color": PHASE[phase], "line": {"width": 0}},
            customdata=[f"{ns:,}" for ns in spent], hovertemplate=f"<b>{said}</b><br>%{{customdata}} ns<extra></extra>",
        )  # fmt: skip
    return _framed(figure, f"time of the gaps, {unit}")


def _framed(figure: go.Figure, title: str) -> go.Figure:
    figure.update_xaxes(title_text="length of a gap", type="category").update_yaxes(title_text=title)
    return bars.plain(figure, 380, barmode="stack", bargap=0.15)
