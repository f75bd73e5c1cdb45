"""Stacked horizontal bars in Plotly: what the figures share. Hatched is inferred, crossed is unattributed."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

import plotly.graph_objects as go

from tprof.present.colours import OTHER, PHASE, PURPOSE
from tprof.present.names import short
from tprof.present.words import label, meaning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze import Row

_PATTERN: Final = {"recorded": "", "inferred": "/", "unattributed": "x"}
_KEY: Final = {"inferred": "hatched: inferred", "unattributed": "crossed: unattributed"}
_LABELLED, _LISTED = 6.0, 0.2  # percent of a bar: from here on a piece carries its name, or is in the legend
_NAME: Final = 28  # characters of a name on the axis
LEGEND_ABOVE: Final = {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "xanchor": "left"}
LEGEND_BELOW: Final = LEGEND_ABOVE | {"y": 0, "yref": "container"}
_SCALES: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of one bar.

    Attributes:
        bar: position of its bar, 0 is the top.
        said: what the hover says before the basis.
        name: a phase or a purpose; it gives the colour.
        basis: recorded, inferred or unattributed; it gives the pattern.
        ns: exact length.
        percent: length as percent of `whole`.
        whole: the denominator, in words.
    """

    bar: int
    said: str
    name: str
    basis: str
    ns: int
    percent: float
    whole: str


def stacked(
    pieces: Sequence[Piece], lengths: Sequence[float], bars: Sequence[str], *, inside: str, or_load: bool
) -> go.Figure:
    """Pieces, in the order in which they stack, as one trace per kind: a kind is one legend entry and one click.

    Args:
        pieces: stretches of all bars.
        lengths: how long each is drawn, shape (pieces,).
        bars: names of the bars; they may come from a trace.
        inside: what stands between name and share inside a piece; empty for neither, and for no legend.
        or_load: `compile` cannot be told from loading.
    """
    kinds: dict[tuple[str, str, str], list[int]] = {}
    for i, piece in enumerate(pieces):
        kinds.setdefault((piece.said, piece.name, piece.basis), []).append(i)
    figure, listed = go.Figure(), set[str]()
    for (_, name, _), members in kinds.items():
        new = bool(inside) and name not in listed and max(pieces[i].percent for i in members) >= _LISTED
        listed |= {name} if new else set()
        shown, drawn = label(name, or_load=or_load), [lengths[i] for i in members]
        figure.add_trace(_bar([pieces[i] for i in members], drawn, shown, inside=inside).update(showlegend=new))
    figure.add_traces(basis_keys({piece.basis for piece in pieces}))
    return named(figure, [escape(short(name, _NAME)) for name in bars])


def _bar(pieces: Sequence[Piece], lengths: Sequence[float], shown: str, *, inside: str) -> go.Bar:
    """One kind of piece on every bar that has it."""
    first = pieces[0]
    text = [f"{shown}{inside}{p.percent:.1f} %" if inside and p.percent >= _LABELLED else "" for p in pieces]
    return go.Bar(
        x=lengths, y=[p.bar for p in pieces], orientation="h", name=shown, legendgroup=first.name,
        marker=marker((PHASE | PURPOSE)[first.name], first.basis),
        text=text, textposition="inside", insidetextanchor="middle", textangle=0,
        customdata=[[f"{p.ns:,}", f"{p.percent:.3f}", p.whole] for p in pieces],
        hovertemplate=f"<b>{shown}</b>: {meaning(first.name)}<br>{first.said}{first.basis}<br>"
        "%{customdata[0]} ns, %{customdata[1]} % of %{customdata[2]}<extra></extra>",
    )  # fmt: skip


def basis_keys(bases: set[str]) -> list[go.Bar]:
    """Legend entries that explain the patterns in use."""
    return [
        go.Bar(x=[0], y=[0], name=said, marker=marker(OTHER, basis), hoverinfo="skip", showlegend=True)
        for basis, said in _KEY.items() if basis in bases
    ]  # fmt: skip


def marker(colour: str, basis: str) -> Row:
    """How a bar is filled: its fixed colour, and a pattern that says whether it is known."""
    lines = {"fgcolor": "rgba(255,255,255,0.5)", "bgcolor": colour, "size": 8, "solidity": 0.16}
    return {"color": colour, "pattern": {"shape": _PATTERN[basis], **lines}, "line": {"width": 0}}


def named(figure: go.Figure, ticks: Sequence[str]) -> go.Figure:
    """A line per name from the top down; names that come from a trace are escaped already."""
    return figure.update_yaxes(tickvals=list(range(len(ticks))), ticktext=ticks, range=[max(len(ticks), 1) - 0.5, -0.5])


def written(text: Sequence[str], ends: Sequence[float]) -> go.Scatter:
    """One line of text behind the end of each bar."""
    return go.Scatter(
        x=ends, y=list(range(len(text))), mode="text", text=[f" {line}" for line in text], textposition="middle right",
        hoverinfo="skip", showlegend=False,
    )  # fmt: skip


def framed(figure: go.Figure, title: str, ends: Sequence[float], per_bar: int, suffix: str = "") -> go.Figure:
    """Axis with unit, room for the text behind the longest bar, height by the number of bars, legend below."""
    entries = sum(bool(trace.showlegend) for trace in figure.data)
    legend = 0 if not entries else 40 if entries == 1 else 65
    room = 1.5 * max(ends, default=0.0) or 1.0
    figure.update_xaxes(title_text=title, range=[0, room], ticksuffix=suffix, rangemode="tozero")
    return figure.update_layout(
        barmode="stack", uniformtext={"minsize": 9, "mode": "hide"},
        bargap=0.22, dragmode=False, height=75 + legend + per_bar * max(len(ends), 1),
        margin={"l": 8, "r": 20, "t": 8, "b": 50 + legend}, hoverlabel={"align": "left"},
        legend=LEGEND_BELOW,
    )  # fmt: skip


def plain(figure: go.Figure, height: int, **more: object) -> go.Figure:
    """Height of a figure whose axes are its own, and more of its layout; legend above."""
    margin = {"l": 8, "r": 8, "t": 20, "b": 8}
    return figure.update_layout(dragmode=False, height=height, margin=margin, legend=LEGEND_ABOVE, **more)


def scale(longest_ns: int) -> tuple[int, str]:
    """Divisor and name of the unit in which the longest bar has at least one digit before the point."""
    return next(((divisor, unit) for divisor, unit in _SCALES if longest_ns >= divisor), _SCALES[-1])
