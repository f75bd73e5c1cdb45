"""The page Idle: what each device waited for, how long its gaps are, and where the longest lie."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import streamlit as st

from tprof.present import columns, figures, figures_idle, units, views
from tprof.present.words import label
from tprof_app.panels import chart, downloads, heading, panel, table
from tprof_app.state import one_of, segments, some_of, window_text

if TYPE_CHECKING:
    from tprof.analyze import Result
    from tprof_app.recording import Recording
    from tprof_app.state import State

_GAPS: Final = 100
_NO_DEVICE: Final = (
    "No device events were recorded, so nothing can be said about the GPU. Record CUDA activity "
    "(torch.profiler: activities=[CPU, CUDA]; nsys: --trace=cuda)."
)


def page(recording: Recording, state: State) -> None:
    """Phases, lengths, the longest gaps."""
    _filters(recording, state)
    result = recording.ask("idle", replace(state.options, top=_GAPS))
    if not result.tables["phases"]:
        panel(result, "phases", state.command("idle"), empty=_NO_DEVICE)
        return
    _phases(result, state)
    _lengths(result, state)
    _gaps(result, state)


def _filters(recording: Recording, state: State) -> None:
    """Devices and ranks, where there are several."""
    every = recording.ask("idle", replace(state.options, devices=(), ranks=(), top=_GAPS))
    names = list(dict.fromkeys(row["device"] for row in every.tables["phases"]))
    ranks = sorted({rank for rank in recording.trace.processes["rank"].to_pylist() if rank is not None})
    with st.container(horizontal=True):
        if len(names) > 1:
            some_of(state, "device", "Devices", names, format_func=_short, placeholder="All devices")
        if len(ranks) > 1:
            some_of(state, "rank", "Ranks", [str(rank) for rank in ranks], placeholder="All ranks")


def _short(device: str) -> str:
    """Without the folder, where a device is named after its file."""
    return "/".join(device.split("/")[-2:])


def _phases(result: Result, state: State) -> None:
    rows, or_load = result.tables["phases"], columns.or_load(result)
    several = len({row["device"] for row in rows}) > 1
    figure = (figures_idle.by_device if several else figures.idle)(rows, or_load=or_load)
    largest = max(rows, key=lambda row: row["total_ns"])
    part = f"{label(largest['phase'], or_load=or_load)}, {units.duration(largest['total_ns'])}"
    alt = f"Time without device work by phase; the largest part is {part}"
    panel(result, "phases", state.command("idle"), figure=figure, alt=alt)


def _lengths(result: Result, state: State) -> None:
    """The histogram of one device."""
    view, rows = views.view(result, "lengths"), result.tables["lengths"]
    heading(view.heading, view.caption, state.command("idle", "--format", "csv", "--table", "lengths"))
    names = list(dict.fromkeys(row["device"] for row in rows))
    with st.container(horizontal=True):
        name = one_of(state, "of", "Device", names) if len(names) > 1 else names[0]
        count = segments(state, "by", "Height of a bar", ("Time", "Number")) == "Number"
    mine = [row for row in rows if row["device"] == name]
    figure = figures_idle.lengths(mine, count=count, or_load=columns.or_load(result))
    chart(figure, f"{'Number' if count else 'Time'} of gaps by their length", "lengths-figure")
    table(result, "lengths", rows=mine, key="lengths-table")
    downloads(result, "lengths", figure)


def _gaps(result: Result, state: State) -> None:
    """The longest gaps; a chosen one leads to the timeline."""
    view = views.view(result, "gaps")
    heading(view.heading, f"{view.caption} Select one to see it.", state.command("idle", "--top", str(_GAPS)))
    row = table(result, "gaps", key="gaps-table", pick=True)
    if row:
        window = window_text(row["start_ns"], row["end_ns"])
        state.link("Timeline", f"See the gap of {units.duration(row['gap_ns'])} in the timeline", window=window)
    downloads(result, "gaps")
