"""A window of the timeline as a Plotly figure: real bars where they are few, else a picture of shares per pixel.

A drag marks a part of the window to zoom into, or a click picks a bar: its `customdata` is what `pick` reads.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import plotly.graph_objects as go

from tprof.analyze.lanes import PARTS, RANGE
from tprof.model import codes
from tprof.present import names, units
from tprof.present.bars import LEGEND_BELOW, marker, scale
from tprof.present.colours import of_part
from tprof.present.pixmap import picture
from tprof.present.words import part_label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze.zoom import Zoom
    from tprof.model import Trace

_LANE: Final = 30  # pixels of height
_ENTRY: Final = 25  # of a row of five entries of the legend
_HOVERS: Final = 6_000  # cells that say what they are made of
_ANCHORS: Final = 400  # invisible points: a drag over none of them would not be heard of
_NAME: Final = 44  # characters of a name
_ROOM: Final = 14  # a bar carries its name if so many of them fill the window
_SHOWN: Final = 0.001  # of a cell: less is not told


def timeline(view: Zoom, trace: Trace, zero_ns: int, *, or_load: bool = False, picking: bool = False) -> go.Figure:
    """The figure.

    Args:
        view: what to draw.
        trace: for names.
        zero_ns: what the axis counts from.
        or_load: `compile` cannot be told from loading.
        picking: a click picks a bar, instead of a drag that marks a part: Streamlit hears of one or the other.
    """
    low, high = view.window
    divisor, unit = scale(high - low)
    figure = go.Figure()
    if view.spent:
        _shares(figure, view, zero_ns, divisor, or_load=or_load)
    _bars(figure, view, trace, zero_ns, divisor, or_load=or_load)
    at = (view.edges[:-1] - zero_ns) / divisor
    anchors = at[:: max(len(at) // _ANCHORS, 1)]
    figure.add_trace(
        go.Scatter(x=anchors, y=np.zeros(len(anchors)), mode="markers", hoverinfo="skip", showlegend=False,
                   marker={"opacity": 0, "size": 2})
    )  # fmt: skip
    count, below = max(len(view.lanes), 1), 60 + _ENTRY * sum(bool(drawn.showlegend) for drawn in figure.data) // 5
    figure.update_yaxes(
        tickvals=[-i for i in range(len(view.lanes))], ticktext=_labels(view), range=[0.5 - count, 0.5], fixedrange=True
    )
    window = [(edge - zero_ns) / divisor for edge in view.window]
    figure.update_xaxes(title_text=f"time after the first event, {unit}", range=window, fixedrange=True)
    return figure.update_layout(
        barmode="overlay", uniformtext={"minsize": 10, "mode": "hide"}, height=below + 10 + _LANE * count,
        dragmode=False if picking else "select", selectdirection="h", clickmode="event+select",
        margin={"l": 8, "r": 12, "t": 8, "b": below}, hoverlabel={"align": "left"},
        legend=LEGEND_BELOW | {"itemclick": False},
    )  # fmt: skip


def dragged(view: Zoom, marked: Sequence[float], zero_ns: int) -> tuple[int, int]:
    """The window that a drag marked, at least a nanosecond of the window that was shown.

    Args:
        view: what was drawn.
        marked: positions on its axis.
        zero_ns: what the axis counts from.
    """
    divisor, _ = scale(view.window[1] - view.window[0])
    low, high = (round(x * divisor) + zero_ns for x in (min(marked), max(marked)))
    low = min(max(low, view.window[0]), view.window[1] - 1)
    return low, max(min(high, view.window[1]), low + 1)


def pick(said: str) -> tuple[str, int, int, int] | None:
    """Kind and owner of the lane, begin in ns, and row of what was clicked; None if the text names nothing."""
    kind, *rest = said.split(".")
    numbers = [int(part) for part in rest if part.lstrip("-").isdecimal()]
    return (kind, numbers[0], numbers[1], numbers[2]) if len(numbers) == 3 else None


def _labels(view: Zoom) -> list[str]:
    """What each lane is called, after the first of a group its process or device."""
    before = [None, *(lane.group for lane in view.lanes)]
    return [
        (f"<b>{escape(names.short(lane.group, 24))}</b>  " if lane.group != group else "")
        + escape(names.short(lane.label, 34))
        for lane, group in zip(view.lanes, before, strict=False)
    ]


def _bars(figure: go.Figure, view: Zoom, trace: Trace, zero_ns: int, divisor: int, *, or_load: bool) -> None:
    """One trace per part and basis; what the picture alone shows has its entry in the legend too."""
    bars, told = view.bars, np.array(_names(view, trace, or_load=or_load), object)
    length = bars.end - bars.start
    said = np.array([units.duration(ns) for ns in length.tolist()], object)
    rows = zip(bars.lane.tolist(), bars.start.tolist(), bars.row.tolist(), strict=True)
    keys = [f"{view.lanes[lane].kind}.{view.lanes[lane].of}.{start}.{row}" for lane, start, row in rows]
    begin, end = np.maximum(bars.start, view.window[0]), np.minimum(bars.end, view.window[1])  # so names are in sight
    inside = np.where((end - begin) * _ROOM > view.window[1] - view.window[0], told, "")
    listed = set[str]()
    for code in sorted({*bars.part.tolist(), *(code for spent in view.spent for code in spent)}):
        (part, basis), mine = PARTS[code], np.flatnonzero(bars.part == code)
        shown = _shown(part, or_load=or_load)
        figure.add_trace(go.Bar(
            x=(end - begin)[mine] / divisor, base=(begin[mine] - zero_ns) / divisor, y=-bars.lane[mine], width=0.8,
            orientation="h", name=shown, marker=_filled(part, basis, inside[mine] != ""), text=inside[mine],
            textposition="inside", insidetextanchor="start", textangle=0, hovertext=told[mine],
            customdata=[[keys[i], said[i]] for i in mine.tolist()],
            hovertemplate=f"<b>%{{hovertext}}</b><br>{shown}, {basis}<br>%{{customdata[1]}}<extra></extra>",
            showlegend=False, unselected={"marker": {"opacity": 0.85}},
        ))  # fmt: skip
        if shown not in listed:
            key = go.Bar(x=[None], y=[0], name=shown, marker=marker(of_part(part), "recorded"), showlegend=True)
            figure.add_trace(key)
            listed.add(shown)


def _filled(part: str, basis: str, long: np.ndarray) -> dict[str, Any]:
    """Colour and pattern; long ranges have an edge, for ranges of one colour lie side by side."""
    edge = {"line": {"width": long.astype(np.uint8), "color": "rgba(255,255,255,0.7)"}} if part == RANGE else {}
    return marker(of_part(part), basis) | edge


def _shown(part: str, *, or_load: bool) -> str:
    return part if part == RANGE else part_label(part, or_load=or_load)


def _names(view: Zoom, trace: Trace, *, or_load: bool) -> list[str]:
    """What each bar is called: the kernel, the range, or the phase."""
    tables = {"stream": codes(trace.device, "name"), "ranges": codes(trace.host, "name")}
    found = []
    for lane, part, row in zip(view.bars.lane.tolist(), view.bars.part.tolist(), view.bars.row.tolist(), strict=True):
        if row >= 0:
            code, known = tables[view.lanes[lane].kind]
            found.append(escape(names.kernel(known[code[row]], _NAME)))
        else:
            found.append(_shown(PARTS[part][0], or_load=or_load))
    return found


def _shares(figure: go.Figure, view: Zoom, zero_ns: int, divisor: int, *, or_load: bool) -> None:
    """The picture, and over it cells that say on hover what they are made of."""
    low, high = ((edge - zero_ns) / divisor for edge in view.window)
    width = np.diff(view.edges)
    shares = [{PARTS[code]: spent / width for code, spent in lane.items()} for lane in view.spent]
    figure.add_layout_image(
        source=picture(shares), xref="x", yref="y", x=low, y=0.5, sizex=high - low, sizey=len(shares),
        xanchor="left", yanchor="top", sizing="stretch", layer="below",
    )  # fmt: skip
    columns = max(min(_HOVERS // len(shares), len(width)), 1)
    cut = np.linspace(0, len(width), columns + 1).astype(int)
    whole = np.add.reduceat(width, cut[:-1])
    text = [
        _told([(PARTS[c], np.add.reduceat(s, cut[:-1]) / whole) for c, s in lane.items()], or_load=or_load)
        for lane in view.spent
    ]
    clear = [[0, "rgba(0,0,0,0)"], [1, "rgba(0,0,0,0)"]]
    at = (view.edges[cut] - zero_ns) / divisor
    figure.add_trace(
        go.Heatmap(x=at, y=[-i for i in range(len(text))], z=np.zeros((len(text), columns), np.uint8), text=text,
                   hovertemplate="%{text}<extra></extra>", colorscale=clear, showscale=False)
    )  # fmt: skip


def _told(parts: Sequence[tuple[tuple[str, str], np.ndarray]], *, or_load: bool) -> list[str]:
    """`compile 62.0 %<br>launch 20.1 %` of each cell, the largest first."""
    labels = [
        part_label(part, or_load=or_load) + (f" ({basis})" if basis == "inferred" else "") for (part, basis), _ in parts
    ]
    shares = np.array([share for _, share in parts])
    order = np.argsort(-shares, axis=0, kind="stable")
    return [
        "<br>".join(f"{labels[p]} {units.share(shares[p, cell])}" for p in order[:, cell] if shares[p, cell] >= _SHOWN)
        for cell in range(shares.shape[1])
    ]
