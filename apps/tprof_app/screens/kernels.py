"""The page Kernels: what ran on the devices, who wrote it, why it ran; of one kernel its durations and launches."""

from __future__ import annotations

from glob import escape
from typing import TYPE_CHECKING, Final

import streamlit as st

from tprof.events import PATHS, PURPOSES
from tprof.present import figures_kernels, units, views
from tprof_app import choices
from tprof_app.panels import chart, downloads, heading, panel, table
from tprof_app.state import change, some_of
from tprof_app.text import plain

if TYPE_CHECKING:
    from tprof.analyze.result import Row
    from tprof_app.recording import Recording
    from tprof_app.state import State

_NAMED: Final = 4
_NO_DEVICE: Final = "No device events lie in this part of the recording. Record CUDA activity, or show all of it."
_NO_WORK: Final = "No device work of an operator lies in this part of the recording."


def page(recording: Recording, state: State) -> None:
    """One kernel, if one is chosen; else all."""
    if kernels := state.get("kernel"):
        _one(recording, state, kernels)
    else:
        _all(recording, state)


def _all(recording: Recording, state: State) -> None:
    result = recording.ask("kernels", state.options)
    view, rows = views.view(result, "kernels"), result.tables["kernels"]
    heading(view.heading, f"{view.caption} Select one for its durations and launches.", state.command("kernels"))
    if not rows:
        st.info(_NO_DEVICE, icon=":material/info:")
        return
    rows = _filtered(state, rows)
    figure = figures_kernels.largest(rows)
    first = f", the largest {units.duration(rows[0]['total_ns'])}" if rows else ""
    chart(
        figure, f"The {min(len(rows), figures_kernels.LARGEST)} kernels with most device time{first}", "kernels-figure"
    )
    row = table(result, "kernels", rows=rows, key="kernels-table", pick=True)
    if row:
        change(kernel=escape(row["name"]))
        st.rerun()
    downloads(result, "kernels", figure)
    panel(result, "paths", state.command("kernels", "--format", "csv", "--table", "paths"), empty=_NO_WORK)


def _filtered(state: State, rows: list[Row]) -> list[Row]:
    """Rows of the paths and purposes that are asked for."""
    with st.container(horizontal=True):
        paths = some_of(state, "path", "Who wrote it", [p for p in PATHS if any(r["path"] == p for r in rows)])
        purposes = [p for p in PURPOSES if any(row["purpose"] == p for row in rows)]
        purpose = some_of(state, "purpose", "Why it ran", purposes)
    return [r for r in rows if (not paths or r["path"] in paths) and (not purpose or r["purpose"] in purpose)]


def _one(recording: Recording, state: State, kernels: str) -> None:
    """Durations and launch configurations of the kernels of a glob, as a rule one."""
    st.button("All kernels", on_click=change, kwargs={"kernel": None}, icon=":material/arrow_back:")
    result = recording.ask("kernels", choices.about(state.options, kernels))
    for name in dict.fromkeys(row["name"] for row in result.tables["kernels"][:_NAMED]):
        st.markdown(f"**{plain(name)}**")
    command = state.command("kernels", *choices.flags(kernels))
    rows = result.tables["durations"]
    panel(result, "kernels", command, empty="No kernel of this name ran in this part of the recording.")
    if rows:
        alt = f"How many executions took how long, from {units.duration(rows[0]['from_ns'])}"
        panel(result, "durations", command, figure=figures_kernels.durations(rows), alt=alt)
        panel(result, "launches", command)
        panel(result, "paths", command, empty=_NO_WORK)
