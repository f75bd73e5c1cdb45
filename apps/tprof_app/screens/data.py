"""The page Data: what was read and what was lost, how far the clocks can be trusted, and what reproduces each page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import streamlit as st

from tprof.analyze.result import Result, source_rows
from tprof.events import TABLES
from tprof.present import units
from tprof_app.panels import heading, panel
from tprof_app.sources import without_folder

if TYPE_CHECKING:
    from tprof.analyze.result import Row
    from tprof.events import Note
    from tprof.facade import Trace
    from tprof_app.recording import Recording
    from tprof_app.state import State

_VERBS: Final = {
    "Overview": "summary", "Cold start": "cold", "Shapes": "shapes", "Idle": "idle", "Kernels": "kernels",
    "Requests": "requests",
}  # fmt: skip


def page(recording: Recording, state: State) -> None:
    """Sources, clock, warnings, processes, tables, commands."""
    trace = recording.trace
    sources = [{**row, "path": without_folder(row["path"], state.served)} for row in source_rows(trace)]
    sizes = [(name, getattr(trace, name)) for name in TABLES]
    rows = [{"table": name, "rows": len(data), "arrow_bytes": data.nbytes} for name, data in sizes if len(data)]
    told = state.command("summary", "-f", "json")
    result = Result("data", {"sources": sources, "processes": trace.processes.to_pylist(), "tables": rows}, {})
    panel(result, "sources", told)
    st.caption(_clock(trace))
    notes = Result("warnings", {"warnings": [_said(note, state) for note in trace.notes]}, {})
    panel(notes, "warnings", told, empty="No warnings: nothing was lost or repaired.")
    for name in ("processes", "tables"):
        panel(result, name, "", empty="The recording names none.")
    heading("Commands", "Each page shows what one of these prints.", "")
    lines = [f"# {title}\n{state.command(verb)}" for title, verb in _VERBS.items()]
    st.code("\n".join(lines), language="bash", wrap_lines=True)


def _said(note: Note, state: State) -> Row:
    """A warning without folders of the server."""
    return {
        name: without_folder(value, state.served) if isinstance(value, str) else value
        for name, value in note.to_dict().items()
    }


def _clock(trace: Trace) -> str:
    """What the times mean."""
    if trace.epoch_ns is None:
        return "No source says what time of day it was."
    zero = datetime.fromtimestamp(trace.epoch_ns / 1e9, UTC).isoformat(" ", "milliseconds")
    bound = "not known" if trace.epoch_error_ns is None else f"at most {units.duration(trace.epoch_error_ns)}"
    return f"Zero of the clock is {zero}; its error is {bound}."
