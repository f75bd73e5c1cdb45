"""A cold start as Plotly figures: its steps in time, the candidates of a search, and start-up."""

from __future__ import annotations

from bisect import bisect
from html import escape
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import plotly.graph_objects as go

from tprof.present import bars, columns, units
from tprof.present.colours import OTHER, PHASE
from tprof.present.gantt import Call, Stretch, gantt
from tprof.present.names import short
from tprof.present.words import label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze import Row

STEPS: Final = 60  # drawn: as many as a page can show


def waterfall(rows: Sequence[Row], calls: Sequence[Row] = (), *, or_load: bool = False) -> go.Figure:
    """One lane per step in order of its begin, cut by phase; a tick is the first call of a shape.

    Args:
        rows: `waterfall` of a cold start; the `STEPS` longest steps are drawn.
        calls: steps `cold call` of the lives of shapes.
        or_load: `compile` cannot be told from loading.
    """
    kept = _longest(rows)
    lanes = {step: lane for lane, step in enumerate(kept)}
    drawn = [row for row in rows if row["number"] in lanes]
    stretches = [
        Stretch(lanes[r["number"]], r["at_ns"], r["wall_ns"], r["phase"], r["what"] or "", r["basis"]) for r in drawn
    ]
    first = [next(row for row in drawn if row["number"] == step) for step in kept]
    names = [" ".join([*who, _step(row, or_load=or_load)]) for row, who in zip(first, _who(first), strict=True)]
    return gantt(stretches, _calls(drawn, calls, lanes), names, or_load=or_load)


def _who(rows: Sequence[Row]) -> list[list[str]]:
    """What tells the threads (`pid/tid name`) of the steps apart: the process, else the thread, else nothing."""
    ids = [row["thread"].partition(" ")[0].partition("/") for row in rows]
    pids, tids = {pid for pid, _, _ in ids}, {tid for _, _, tid in ids}
    return [[pid] if len(pids) > 1 else [tid] if len(tids) > 1 else [] for pid, _, tid in ids]


def _longest(rows: Sequence[Row]) -> list[int]:
    """Numbers of the longest steps, in order of their begin."""
    spent: dict[int, int] = {}
    for row in rows:
        spent[row["number"]] = spent.get(row["number"], 0) + row["wall_ns"]
    return sorted(sorted(spent, key=lambda step: -spent[step])[:STEPS])


def _step(row: Row, *, or_load: bool) -> str:
    """Name of a lane: `matmul BM 64, BN 64`, `softmax first use`, `graph compile`; a winner is ticked."""
    if row["role"] == "other":
        return f"{row['kernel']} between" if row["kernel"] else label(row["phase"], or_load=or_load)
    role = row["role"] if not row["config"] else "✓" if row["role"] == "winner" else ""
    config = columns.cell("config", row["config"] or "").replace("num_", "").replace(":", "")
    number = "" if config or role == "first use" else f"of step {row['number']}"  # or all would be named alike
    return " ".join(part for part in (short(row["kernel"] or "", 20), role, config, number) if part)


def _calls(rows: Sequence[Row], calls: Sequence[Row], lanes: dict[int, int]) -> list[Call]:
    """First calls, each on the lane of the last step for its kernel before it."""
    steps: dict[str, list[tuple[int, int]]] = {}
    for row in rows:  # in order of time
        steps.setdefault(row["kernel"] or "", []).append((row["at_ns"], lanes[row["number"]]))
    found = []
    for call in calls:
        own = steps.get(call["kernel"], [])
        said = f"first call of {call['kernel']} {call['label']}, {units.duration(call['wall_ns'])}"
        if before := bisect(own, call["at_ns"], key=itemgetter(0)):
            found.append(Call(own[before - 1][1], call["at_ns"], said))
    return found


def startup(rows: Sequence[Row], *, or_load: bool = False) -> go.Figure:
    """One bar per part of the start-up of one process, in order of first occurrence."""
    divisor, unit = bars.scale(max((row["total_ns"] for row in rows), default=0))
    ends = [row["total_ns"] / divisor for row in rows]
    figure = go.Figure(go.Bar(
        x=ends, y=list(range(len(rows))), orientation="h", hoverinfo="skip", showlegend=False,
        marker={"color": [PHASE.get(row["part"], OTHER) for row in rows]},
    ))  # fmt: skip
    texts = [f"{units.duration(row['total_ns'])}, {units.share(row['of_startup_share'])}" for row in rows]
    figure.add_trace(bars.written(texts, ends))
    bars.named(figure, [_part(row, or_load=or_load) for row in rows])
    return bars.framed(figure, f"time until ready, {unit}", ends, 26)


def _part(row: Row, *, or_load: bool) -> str:
    name = label(row["part"], or_load=or_load)
    return escape(short(f"{name} in {row['within']}" if row["within"] else name, 40))


def candidates(rows: Sequence[Row]) -> go.Figure:
    """Candidates of one search, best first: what the tuner compared with its spread, and the mean on the device."""
    timed = [row for row in rows if row["time_ns"] is not None]
    every = [row["time_ns"] + (row["spread_ns"] or 0) // 2 for row in timed] + [
        row["device_mean_ns"] or 0 for row in timed
    ]
    divisor, unit = bars.scale(max(every, default=0))
    place = list(range(len(timed)))
    measured = go.Bar(
        x=[row["time_ns"] / divisor for row in timed], y=place, orientation="h", name="what the tuner compared",
        marker={"color": [PHASE["autotune"] if row["winner"] else OTHER for row in timed]}, showlegend=False,
        error_x={"type": "data", "array": [(row["spread_ns"] or 0) / 2 / divisor for row in timed], "thickness": 1.5},
        text=[units.duration(row["time_ns"]) for row in timed], textposition="inside", insidetextanchor="start",
        hoverinfo="skip",
    )  # fmt: skip
    on_device = [i for i in place if timed[i]["device_mean_ns"]]
    mean = go.Scatter(
        x=[timed[i]["device_mean_ns"] / divisor for i in on_device], y=on_device, mode="markers", hoverinfo="skip",
        name="mean on the device", marker={"symbol": "diamond", "size": 10, "color": PHASE["launch"]},
        showlegend=bool(on_device),
    )  # fmt: skip
    figure = bars.named(go.Figure([measured, mean]), [escape(short(_config(row), 60)) for row in timed])
    framed = bars.framed(figure, f"time of a call, {unit}", [1.0] * len(timed), 30)
    return framed.update_xaxes(range=[0, 1.1 * max(every, default=0) / divisor or 1.0])


def _config(row: Row) -> str:
    name = columns.cell("config", row["config"]) if row["config"] else f"candidate {row['order'] + 1}"
    return f"✓ {name}" if row["winner"] else name
