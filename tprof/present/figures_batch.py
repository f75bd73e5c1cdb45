"""A batch as Plotly figures: its processes side by side, its shapes and requests by what of them was cold."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

import plotly.graph_objects as go

from tprof.present import bars, units
from tprof.present.colours import OTHER, PHASE, PURPOSE
from tprof.present.names import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze import Row

DRAWN: Final = 32
_NAME: Final = 48
_GAP: Final = 0.06  # between two plots side by side


@dataclass(frozen=True)
class _Part:
    """One kind of time, a piece of every bar."""

    label: str
    colour: str
    ns: Sequence[int]


def ranks(rows: Sequence[Row]) -> go.Figure:
    """Device time of each process of a job, and beside it how long others waited for it; the first `DRAWN` rows."""
    shown = rows[:DRAWN]
    device = [
        _Part("work", PURPOSE["work"], [row["work_ns"] for row in shown]),
        _Part("collectives", PHASE["collective"], [row["collective_ns"] for row in shown]),
    ]
    late, cold = ([row[name] or 0 for row in shown] for name in ("late_ns", "late_cold_ns"))
    waited = [
        _Part("late, cold", PHASE["compile"], cold),
        _Part("late, not cold", OTHER, [a - b for a, b in zip(late, cold, strict=True)]),
    ]
    figure = _stacked([row["name"] for row in shown], device, "device time")
    return _beside(figure, waited, "late for collectives") if any(late) else figure


def shapes(rows: Sequence[Row]) -> go.Figure:
    """Cold time that was charged to each shape; the first `DRAWN` rows that have any."""
    shown = [row for row in rows if row["cold_ns"]][:DRAWN]
    compiled, tuned = ([row[name] or 0 for row in shown] for name in ("compile_ns", "autotune_ns"))
    rest = [max(row["cold_ns"] - c - t, 0) for row, c, t in zip(shown, compiled, tuned, strict=True)]
    parts = [
        _Part("compile", PHASE["compile"], compiled), _Part("autotune", PHASE["autotune"], tuned),
        _Part("other cold", PHASE["module_load"], rest),
    ]  # fmt: skip
    return _stacked([f"{row['kernel']} {row['shape']}" for row in shown], parts, "cold time")


def requests(rows: Sequence[Row]) -> go.Figure:
    """Wall time of each request, and how much of it was cold; the first `DRAWN` rows."""
    shown = rows[:DRAWN]
    parts = [
        _Part("cold tax", PHASE["compile"], [row["cold_tax_ns"] for row in shown]),
        _Part("warm", PURPOSE["work"], [row["wall_ns"] - row["cold_tax_ns"] for row in shown]),
    ]
    return _stacked([f"{row['name']} {row['id'] or ''} · {row['trace']}" for row in shown], parts, "wall time")


def _stacked(names: Sequence[str], parts: Sequence[_Part], title: str) -> go.Figure:
    totals = [sum(ns) for ns in zip(*(part.ns for part in parts), strict=True)]
    divisor, unit = bars.scale(max(totals, default=0))
    figure = go.Figure([_bar(part, divisor) for part in parts if any(part.ns)])
    figure.add_trace(bars.written([units.duration(ns) for ns in totals], [ns / divisor for ns in totals]))
    bars.named(figure, [escape(short(name, _NAME)) for name in names])
    return bars.framed(figure, f"{title}, {unit}", [ns / divisor for ns in totals], 26)


def _bar(part: _Part, divisor: int) -> go.Bar:
    return go.Bar(
        x=[ns / divisor for ns in part.ns], y=list(range(len(part.ns))), orientation="h", name=part.label,
        showlegend=True, marker={"color": part.colour, "line": {"width": 0}}, customdata=[f"{ns:,}" for ns in part.ns],
        hovertemplate=f"<b>{part.label}</b><br>%{{customdata}} ns<extra></extra>",
    )  # fmt: skip


def _beside(figure: go.Figure, parts: Sequence[_Part], title: str) -> go.Figure:
    """The same names with another figure at the right."""
    right = _stacked([""] * len(parts[0].ns), parts, title)
    figure.add_traces([trace.update(xaxis="x2") for trace in right.data])
    axis = right.layout.xaxis.to_plotly_json() | {"domain": [0.5 + _GAP / 2, 1], "anchor": "y"}
    return figure.update_layout(xaxis={"domain": [0, 0.5 - _GAP / 2]}, xaxis2=axis)
