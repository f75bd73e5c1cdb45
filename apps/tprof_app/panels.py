"""The panels below the cards: each draws what a Result says, and names the command that prints it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from tprof.present import figures, units
from tprof.present.words import label
from tprof_app import tables
from tprof_app.cards import cards, headline, or_load
from tprof_app.sources import without_folder
from tprof_app.text import command, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    import plotly.graph_objects as go

    from tprof.analyze import Result
    from tprof.analyze.result import Row

__all__ = ["cards", "findings", "headline", "idle", "or_load", "requests", "sources", "wall", "warnings"]

_DETAILS = {"kernel": "Kernel", "shape_key": "Shape", "why": "Why", "fix": "Fix"}
_BARS, _CAUSES, _CARDS, _NOTES = 40, 12, 6, 4  # more than these go to a table or behind a click


def _panel(title: str, said: str, verb: str, paths: Sequence[str]) -> None:
    """Heading, what is shown and of what, and the command that prints the same figures."""
    st.subheader(title, anchor=False, divider="gray")
    st.caption(said)
    st.code(command(verb, paths), language="bash", wrap_lines=True)


def _chart(figure: go.Figure, alt: str, key: str) -> None:
    st.plotly_chart(figure, key=key, alt=alt, config={"displayModeBar": False, "scrollZoom": False})


def wall(summary: Result, paths: Sequence[str]) -> None:
    """The window of every device, as one bar."""
    shown = summary.to_dict()
    said = (
        "Every bar is the whole window of one device: busy by purpose, the rest by what it waited for. "
        "Hover for exact nanoseconds."
    )
    _panel("Where the wall clock went", said, "summary", paths)
    if not shown["devices"]:
        st.info("This recording has no device events, so there is no device time to explain.")
        return
    wall_ns = shown["window"]["wall_ns"]
    figure = figures.wall(shown["devices"], summary.tables["wall"], wall_ns, or_load=or_load(summary))
    _chart(figure, "One bar per device that sums to 100 % of the window", "wall")


def requests(summary: Result, paths: Sequence[str]) -> None:
    """Budget of every request."""
    said = (
        "Time of the thread that served the request, cold phases first. Cold tax is their sum, plus waiting for a "
        "device that only tuned; exposed is the part of it during which no device did work."
    )
    _panel("Requests", said, "requests", paths)
    rows: list[Row] = summary.to_dict()["requests"]
    if not rows:
        st.info("No range is named like a request. Name them on the command line: `tprof requests --range GLOB`.")
        return
    scale = st.segmented_control("Length of a bar", ["time", "share of its request"], default="time", required=True)
    longest = sorted(sorted(rows, key=lambda r: -r["wall_ns"])[:_BARS], key=lambda r: r["start_ns"])
    if len(rows) > _BARS:
        st.caption(f"Drawn: the {_BARS} longest of {units.count(len(rows))}. The table has all.")
    figure = figures.requests(longest, normalise=scale != "time", or_load=or_load(summary))
    _chart(figure, "One bar per request, by phase", "requests")
    tables.requests(summary.tables["requests"], or_load=or_load(summary))


def idle(result: Result, paths: Sequence[str], *, or_load: bool) -> None:
    """What one device waited for."""
    said = (
        "Idle: between the first and the last event of the device. Lead and tail: before and after them. "
        "Shares are of all idle, lead or tail time; the hover has shares of the window."
    )
    _panel("Idle time by cause", said, "idle", paths)
    names = [row["device"] for row in result.to_dict()["devices"]]
    if not names:
        st.info("This recording has no device events, so no device was idle.")
        return
    device = st.selectbox("Device", names) if len(names) > 1 else names[0]
    rows = sorted((r for r in result.tables["phases"] if r["device"] == device), key=lambda r: -r["total_ns"])
    _chart(figures.idle(rows[:_CAUSES], or_load=or_load), "One bar per cause of idle time", "idle")
    if len(rows) > _CAUSES:
        st.caption(f"{len(rows) - _CAUSES} smaller causes are in the table of `tprof idle`.")
    st.markdown("**Longest gaps**")
    tables.gaps([row for row in result.tables["gaps"] if row["device"] == device], or_load=or_load)


def findings(summary: Result, paths: Sequence[str]) -> None:
    """What to look at first."""
    _panel("Findings", "Ranked by cost. Costs overlap: they do not add up.", "summary", paths)
    rows: list[Row] = summary.to_dict()["findings"]
    if not rows:
        st.success("Nothing stands out: no request and no phase was mostly cold, and no device waited for long.")
    for number, row in enumerate(rows[:_CARDS], 1):
        _finding(number, row)
    if len(rows) > _CARDS:
        with st.expander(f"{len(rows) - _CARDS} more"):
            for number, row in enumerate(rows[_CARDS:], _CARDS + 1):
                _finding(number, row)


def _finding(number: int, row: Row) -> None:
    cost = f"{units.duration(row['cost_ns'])}, {units.share(row['share'])} of the {row['of']}, {row['basis']}"
    lines = [f"**{number}. {plain(row['title'])}**: {cost}"]
    lines += [f"{title}: {plain(row[key])}" for key, title in _DETAILS.items() if row[key]]
    with st.container(border=True):
        st.markdown("  \n".join(lines))


def warnings(summary: Result) -> None:
    """What was lost, repaired or cannot be known; above the figures that it touches."""
    notes = [f"{note.code} ({units.count(note.count)}): {note.message}" for note in summary.notes]
    for note in notes[:_NOTES]:
        st.warning(plain(note), icon=":material/warning:")
    if len(notes) > _NOTES:
        with st.expander(f"{len(notes) - _NOTES} more warnings"):
            st.markdown("\n".join(f"- {plain(note)}" for note in notes[_NOTES:]))


def sources(summary: Result, paths: Sequence[str]) -> None:
    """What was read."""
    said = "Its warnings are on top." if summary.notes else "No warnings."
    _panel("Recording", f"What was read. {said}", "doctor", paths)
    tables.sources([{**row, "path": without_folder(row["path"])} for row in summary.sources])
    cold: Row = summary.to_dict()["cold"]
    if included := cold["compile_includes"]:
        names = ", ".join(label(phase) for phase in included)
        st.caption(f"This format cannot tell compile from {names}: all of it is shown as compile or load.")
