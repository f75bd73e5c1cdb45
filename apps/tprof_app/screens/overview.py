"""The page Overview: where the cold start and the idle time went, and what to look at first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import streamlit as st

from tprof.present import figures, sentence
from tprof.present.cards import cards, cold_shapes
from tprof.present.columns import or_load
from tprof_app import panels
from tprof_app.state import window_text
from tprof_app.text import plain

if TYPE_CHECKING:
    from tprof.analyze.result import Result, Row
    from tprof_app.recording import Recording
    from tprof_app.state import State

_FINDINGS: Final = 5  # the rest is behind a click


def page(recording: Recording, state: State) -> None:
    """Answer, cards, wall clock, findings."""
    summary, shapes = recording.ask("summary", state.options), recording.ask("shapes", state.options)
    st.markdown(f"**{plain(sentence.answer(summary))}**")
    panels.cards([*cards(summary), *cold_shapes(shapes)])
    panels.warnings(summary)
    _wall(summary, state)
    _findings(summary, state)


def _wall(summary: Result, state: State) -> None:
    said, told = summary.payload, or_load(summary)
    figure = figures.wall(said["devices"], summary.tables["wall"], said["window"]["wall_ns"], or_load=told)
    none = "This recording has no device events, so there is no device time to explain. Record CUDA activity too."
    alt = "One bar per device that sums to 100 % of the window: " + "; ".join(
        map(sentence.device_line, said["devices"])
    )
    panels.panel(
        summary,
        "wall",
        state.command("summary"),
        figure=figure,
        alt=alt,
        empty=none,
        title="Where the wall clock went",
        fold=True,
    )


def _findings(summary: Result, state: State) -> None:
    """What to look at first; each leads to its part of the timeline."""
    rows = summary.tables["findings"]
    panels.heading("Findings", "Ranked by cost. Costs overlap: they do not add up.", state.command("summary"))
    if not rows:
        st.success("Nothing stands out: no request and no phase was mostly cold, and no device waited for long.")
        return
    for number, row in enumerate(rows[:_FINDINGS], 1):
        _finding(number, row, state)
    if more := rows[_FINDINGS:]:
        with st.expander(f"{len(more)} more"):
            for number, row in enumerate(more, _FINDINGS + 1):
                _finding(number, row, state)
    panels.downloads(summary, "findings")


def _finding(number: int, row: Row, state: State) -> None:
    with st.container(border=True):
        panels.finding(number, row, sentence.finding_cost(row))
        state.link("Timeline", "Show in the timeline", window=window_text(row["start_ns"], row["end_ns"]))
