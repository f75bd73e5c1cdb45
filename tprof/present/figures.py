"""Results as Plotly figures (extra `app`). Each function takes rows and returns a figure, which it does not show."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import plotly.graph_objects as go

from tprof.events import BASES, COLD_PHASES, PHASES
from tprof.present import units
from tprof.present.bars import Piece, framed, scale, stacked, written
from tprof.present.colours import OTHER
from tprof.present.segments import wall_segments
from tprof.present.words import label

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tprof.analyze import Row

WHERE: Final = {
    "lead": "before the first device event, ",
    "busy": "while the device was busy, ",
    "idle": "between device events, ",
    "tail": "after the last device event, ",
}
_SAID: Final = ("", "while the device only tuned, ", "warm, ")  # of a request's pieces, as they stack
_RANK: Final[dict[str, int]] = {phase: i for i, phase in enumerate(PHASES)}


def wall(devices: Sequence[Row], rows: Sequence[Row], wall_ns: int, *, or_load: bool = False) -> go.Figure:
    """One bar per device: the whole window, as busy by purpose and the rest by phase. Every bar sums to 100 %.

    Args:
        devices: rows `devices` of a summary.
        rows: rows `wall` of the same summary.
        wall_ns: length of the window, the denominator.
        or_load: `compile` cannot be told from loading.
    """
    bars = {row["device"]: bar for bar, row in enumerate(devices)}
    order = {segment.part: i for i, segment in reversed(list(enumerate(wall_segments(rows))))}
    ranked = sorted(rows, key=lambda row: (order[row["part"]], BASES.index(row["basis"])))
    pieces = [_of_wall(bars[row["device"]], row) for row in ranked]
    names = [f"{row['device']} {row['name'] or ''}".strip() for row in devices]
    figure = stacked(pieces, [p.percent for p in pieces], names, inside="<br>", or_load=or_load)
    framed(figure, f"share of the window: 100 % is {units.duration(wall_ns)}", [100.0] * len(devices), 58, " %")
    return figure.update_xaxes(range=[0, 100])


def _of_wall(bar: int, row: Row) -> Piece:
    where, _, name = row["part"].partition(".")
    return Piece(bar, WHERE[where], name, row["basis"], row["total_ns"], 100 * row["of_wall_share"], "the window")


def requests(rows: Sequence[Row], *, normalise: bool = False, or_load: bool = False) -> go.Figure:
    """One bar per request: its wall time by phase, cold phases first; a tick ends the cold part that no work hid.

    Args:
        rows: request budgets, in the order in which they are drawn.
        normalise: every bar is 100 % of its own request.
        or_load: `compile` cannot be told from loading.
    """
    pieces = [piece for bar, row in enumerate(rows) for piece in _of_request(bar, row)]
    pieces.sort(key=lambda p: (_SAID.index(p.said), _RANK[p.name]))
    divisor, unit = scale(max((row["wall_ns"] for row in rows), default=0))
    lengths = [p.percent if normalise else p.ns / divisor for p in pieces]
    ends = [100.0 if normalise else row["wall_ns"] / divisor for row in rows]
    exposed = [_percent(row, "cold_exposed_ns") if normalise else row["cold_exposed_ns"] / divisor for row in rows]
    figure = stacked(pieces, lengths, [row["name"] for row in rows], inside=" ", or_load=or_load)
    figure.add_traces([written([_verdict(row) for row in rows], ends), _ticks(rows, exposed)])
    title = "share of the request's own wall time" if normalise else f"wall time of the request, {unit}"
    framed(figure, title, ends, 34, " %" if normalise else "")
    return figure.update_xaxes(tickvals=[0, 25, 50, 75, 100]) if normalise else figure


def _of_request(bar: int, row: Row) -> Iterable[Piece]:
    """Phases of one request; waiting for a device that only tuned counts as cold, apart from other waiting."""
    whole, tuned = max(row["wall_ns"], 1), row["sync_by_device"].get("tuning", 0)
    for phase, ns in row["phases"].items():
        cold, rest = phase in COLD_PHASES, ns - tuned if phase == "sync" else ns
        basis = "unattributed" if phase == "unattributed" else row["basis_by_phase"][phase] if cold else "recorded"
        yield Piece(bar, _SAID[0] if cold else _SAID[2], phase, basis, rest, 100 * rest / whole, "the request")
    if tuned:
        yield Piece(bar, _SAID[1], "sync", row["basis"], tuned, 100 * tuned / whole, "the request")


def _percent(row: Row, key: str) -> float:
    return 100.0 * int(row[key]) / max(int(row["wall_ns"]), 1)


def _verdict(row: Row) -> str:
    share = units.rate(row["cold_tax_ns"], row["wall_ns"])
    return f"{units.duration(row['wall_ns'])}, " + (f"{share} cold" if row["cold_tax_ns"] else "warm")


def _ticks(rows: Sequence[Row], exposed: Sequence[float]) -> go.Scatter:
    """Where the cold part ends that no device work overlapped."""
    cold = [i for i, row in enumerate(rows) if row["cold_exposed_ns"]]
    figures = "%{customdata[0]} ns, %{customdata[1]} % of the request"
    return go.Scatter(
        x=[exposed[i] for i in cold],
        y=cold,
        mode="markers",
        name="tick: cold and exposed up to here",
        showlegend=bool(cold),
        marker={"symbol": "line-ns-open", "size": 22, "color": OTHER, "line": {"width": 3}},
        customdata=[[f"{rows[i]['cold_exposed_ns']:,}", f"{_percent(rows[i], 'cold_exposed_ns'):.3f}"] for i in cold],
        hovertemplate=f"cold while no device did work<br>{figures}<extra></extra>",
    )


def idle(rows: Sequence[Row], *, or_load: bool = False) -> go.Figure:
    """One bar per row of the idle analysis of one device: what it waited for, and how long."""
    divisor, unit = scale(max((row["total_ns"] for row in rows), default=0))
    pieces = [_of_wall(i, {**row, "part": f"{row['where']}.{row['phase']}"}) for i, row in enumerate(rows)]
    ends = [p.ns / divisor for p in pieces]
    figure = stacked(pieces, ends, [_cause(row, or_load=or_load) for row in rows], inside="", or_load=or_load)
    shares = [f"{units.share(row['of_where_share'])} of {row['where']}" for row in rows]
    figure.add_trace(written([f"{units.duration(p.ns)}, {s}" for p, s in zip(pieces, shares, strict=True)], ends))
    return framed(figure, f"time without device work, {unit}", ends, 30)


def _cause(row: Row, *, or_load: bool) -> str:
    name = label(row["phase"], or_load=or_load)
    return name if row["where"] == "idle" else f"{name} ({row['where']})"
