"""Stretches of time on lanes in Plotly: where each lies, what phase it was, and how we know."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

import plotly.graph_objects as go

from tprof.present import bars, units
from tprof.present.colours import OTHER, PHASE
from tprof.present.names import short
from tprof.present.words import label

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST: Final = 5000  # bars: from there on a browser is slow
_NAME: Final = 56  # characters of a lane's name
_LANE: Final = 26  # pixels
_SVG: Final = 2000  # points, from where on WebGL draws faster, and words for each would be half of the page
_FROM: Final = "from the first event of the recording"


@dataclass(frozen=True, slots=True)
class Stretch:
    """A stretch of one lane.

    Attributes:
        lane: position of its lane, 0 is the top.
        at_ns: begin, from the first event of the recording.
        wall_ns: length.
        phase: gives the colour; another word is grey.
        said: what the hover says besides; it may come from a trace.
        basis: recorded, inferred or unattributed.
    """

    lane: int
    at_ns: int
    wall_ns: int
    phase: str
    said: str
    basis: str


@dataclass(frozen=True, slots=True)
class Call:
    """A call on a lane, drawn as a tick; `said` is what the hover says and may come from a trace."""

    lane: int
    at_ns: int
    said: str


def gantt(
    stretches: Sequence[Stretch], calls: Sequence[Call], lanes: Sequence[str], *, or_load: bool = False
) -> go.Figure:
    """One trace per phase and basis, and one of calls; only the `MOST` longest stretches are drawn.

    Args:
        stretches: of all lanes.
        calls: of all lanes.
        lanes: names; they may come from a trace.
        or_load: `compile` cannot be told from loading.
    """
    drawn = sorted(stretches, key=lambda s: -s.wall_ns)[:MOST]
    edges = [edge for s in drawn for edge in (s.at_ns, s.at_ns + s.wall_ns)] + [call.at_ns for call in calls] or [0]
    divisor, unit = bars.scale(max(edges))
    kinds: dict[tuple[str, str], list[Stretch]] = {}
    for stretch in drawn:
        kinds.setdefault((stretch.phase, stretch.basis), []).append(stretch)
    figure, listed = go.Figure(), set[str]()
    for (phase, basis), members in kinds.items():
        bar = _bar(members, divisor, label(phase, or_load=or_load))
        figure.add_trace(bar.update(marker=_marker(phase, basis), legendgroup=phase, showlegend=phase not in listed))
        listed.add(phase)
    figure.add_traces(bars.basis_keys({s.basis for s in drawn}))
    figure.add_trace(_ticks(calls, divisor))
    return framed(figure, lanes, (min(edges) / divisor, max(edges) / divisor), unit)


def _ticks(calls: Sequence[Call], divisor: int) -> go.Scatter | go.Scattergl:
    kind, told = (go.Scatter, calls) if len(calls) <= _SVG else (go.Scattergl, ())
    return kind(
        x=[call.at_ns / divisor for call in calls], y=[call.lane for call in calls], mode="markers", name="call",
        marker={"symbol": "line-ns-open", "size": 14, "color": PHASE["launch"], "line": {"width": 2}},
        text=[escape(call.said) for call in told], hovertemplate="%{text}<extra></extra>",
        hoverinfo=None if told else "skip", showlegend=bool(calls),
    )  # fmt: skip


def _bar(members: Sequence[Stretch], divisor: int, name: str) -> go.Bar:
    return go.Bar(
        base=[s.at_ns / divisor for s in members], x=[s.wall_ns / divisor for s in members],
        y=[s.lane for s in members], orientation="h", name=name,
        width=0.75,  # of a lane; else Plotly takes the least distance between bars of one phase
        customdata=[[escape(s.said), units.duration(s.wall_ns), s.basis] for s in members],
        hovertemplate=f"<b>{name}</b> %{{customdata[0]}}<br>%{{customdata[1]}}, %{{customdata[2]}}<extra></extra>",
    )  # fmt: skip


def _marker(phase: str, basis: str) -> dict[str, object]:
    """With an edge of its own colour: what is narrower than a pixel is still seen."""
    colour = PHASE.get(phase, OTHER)
    return {**bars.marker(colour, basis), "line": {"width": 1, "color": colour}}


def framed(figure: go.Figure, lanes: Sequence[str], edges: tuple[float, float], unit: str) -> go.Figure:
    """A lane per name, and time from edge to edge; legend below."""
    room = 0.01 * (edges[1] - edges[0])
    figure.update_xaxes(title_text=f"{_FROM}, {unit}", range=[edges[0] - room, edges[1] + room])
    bars.named(figure, [escape(short(name, _NAME)) for name in lanes]).update_yaxes(showgrid=False)
    return figure.update_layout(
        barmode="overlay", dragmode=False, height=150 + _LANE * max(len(lanes), 2),
        margin={"l": 8, "r": 20, "t": 8, "b": 115}, hoverlabel={"align": "left"},
        legend=bars.LEGEND_BELOW,
    )  # fmt: skip
