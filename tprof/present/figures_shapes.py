"""Shapes as Plotly figures: first against warm calls, their lives in time, and how concentrated the calls are."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

import plotly.graph_objects as go

from tprof.events import COLD_PHASES
from tprof.present import units
from tprof.present.bars import plain
from tprof.present.colours import OTHER, PHASE, PURPOSE
from tprof.present.gantt import Call, Stretch, framed, gantt
from tprof.present.log_axis import decades
from tprof.present.names import short

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze import Row

SHAPES: Final = 25  # drawn: as many as a page can show
_KERNELS: Final = 8
_POINTS: Final = (
    ("first_call_ns", "first call, with all that was cold for it", "diamond", PHASE["compile"]),
    ("warm_p50_ns", "warm calls, median", "circle", PURPOSE["work"]),
    ("warm_p99_ns", "warm calls, p99", "line-ns-open", PURPOSE["work"]),
    ("device_p50_ns", "on the device, median", "x-thin-open", PHASE["launch"]),
)


def first_and_warm(rows: Sequence[Row]) -> go.Figure:
    """One line per shape: its first call against its later ones, on a logarithmic axis.

    Args:
        rows: `shapes`; the first `SHAPES` of those that were called are drawn.
    """
    shown = [row for row in rows if row["first_call_ns"]][:SHAPES]
    figure = go.Figure()
    every: list[int] = []
    for key, name, symbol, colour in _POINTS:
        mine = [i for i, row in enumerate(shown) if row[key]]
        every += [shown[i][key] for i in mine]
        figure.add_scatter(
            x=[shown[i][key] for i in mine], y=mine, mode="markers", name=name, showlegend=bool(mine),
            marker={"symbol": symbol, "size": 12, "color": colour, "line": {"width": 2, "color": colour}},
            text=[f"{escape(shown[i]['shape'])}<br>{name}: {units.duration(shown[i][key])}" for i in mine],
            hovertemplate="%{text}<extra></extra>",
        )  # fmt: skip
    _joined(figure, shown)
    names = [f"{row['kernel']} {row['label']}, {row['verdict']}" for row in shown]
    framed(figure, names, (0, 1), "")
    return figure.update_xaxes(title_text="wall time of a call on the host", **decades(every))


def _joined(figure: go.Figure, rows: Sequence[Row]) -> None:
    """A thin line from the first call to the median of the warm ones."""
    x: list[int | None] = []
    y: list[int | None] = []
    for i, row in enumerate(rows):
        if row["warm_p50_ns"]:
            x += [row["first_call_ns"], row["warm_p50_ns"], None]
            y += [i, i, None]
    line = {"color": OTHER, "width": 1}
    figure.add_scatter(x=x, y=y, mode="lines", line=line, hoverinfo="skip", showlegend=False)


def lives(steps: Sequence[Row], *, or_load: bool = False) -> go.Figure:
    """One lane per shape: what was cold before a call, one phase after the other, and each call as a tick.

    Args:
        steps: `timeline` of shapes; the first `SHAPES` are drawn.
        or_load: `compile` cannot be told from loading.
    """
    names = list(dict.fromkeys((row["kernel"], row["label"]) for row in steps))[:SHAPES]
    lanes = {name: lane for lane, name in enumerate(names)}
    shown = [(lanes[row["kernel"], row["label"]], row) for row in steps if (row["kernel"], row["label"]) in lanes]
    cold = [(lane, row) for lane, row in shown if row["step"] in COLD_PHASES]
    stretches = [
        Stretch(lane, at, row["wall_ns"], row["step"], _within(row), row["basis"])
        for (lane, row), at in zip(cold, _begins(cold), strict=True)
    ]
    calls = [Call(lane, row["at_ns"], _call(row)) for lane, row in shown if row["step"] in ("call", "cold call")]
    return gantt(stretches, calls, [f"{kernel} {label}" for kernel, label in names], or_load=or_load)


def _begins(cold: Sequence[tuple[int, Row]]) -> list[int]:
    """Where each cold step is drawn: behind the one before it, for they are sums over stretches that alternate."""
    ends: dict[int, int] = {}
    found = []
    for lane, row in cold:
        found.append(max(row["at_ns"], ends.get(lane, row["at_ns"])))
        ends[lane] = found[-1] + row["wall_ns"]
    return found


def _within(row: Row) -> str:
    return f"in {row['stretches']} stretches, {row['request'] or 'in no request'}"


def _call(row: Row) -> str:
    return f"{row['step']}, {units.duration(row['wall_ns'])} {row['request'] or ''}"


def concentration(rows: Sequence[Row]) -> go.Figure:
    """One line per kernel: what share of its calls its most frequent shapes make up.

    Args:
        rows: `concentration` of the payload of shapes; the first kernels are drawn.
    """
    figure = go.Figure()
    for row in rows[:_KERNELS]:
        figure.add_scatter(
            x=[step["k"] for step in row["covered"]], y=[100 * step["share"] for step in row["covered"]],
            mode="lines+markers", name=escape(short(row["kernel"], 40)), showlegend=True,
            hovertemplate=f"{escape(row['kernel'])}<br>%{{y:.1f}} % of {row['calls']:,} calls by the top %{{x}} shapes"
            "<extra></extra>",
        )  # fmt: skip
    ticks = [1, 2, 5, 10, 20, 50]
    figure.update_xaxes(title_text="most frequent shapes", type="log", tickvals=ticks, ticktext=list(map(str, ticks)))
    figure.update_yaxes(title_text="share of the kernel's calls, %", range=[0, 105])
    return plain(figure, 340)
