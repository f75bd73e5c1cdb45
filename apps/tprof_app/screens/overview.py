"""The page Overview: where the cold start and the idle time went, and what to look at first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import streamlit as st

from tprof.present import figures, sentence, words
from tprof.present.cards import cards, cold_shapes
from tprof.present.columns import or_load
from tprof_app import panels
from tprof_app.state import window_text
from tprof_app.text import plain

if TYPE_CHECKING:
    from tprof.analyze.result import Result, Row
    from tprof.present.cards import Card
    from tprof_app.recording import Recording
    from tprof_app.state import State

_DETAILS: Final = {"kernel": "Kernel", "shape_key": "Shape", "why": "Why", "fix": "What to do"}
_FINDINGS: Final = 5  # the rest is behind a click
_ABREAST: Final = 3  # cards


def page(recording: Recording, state: State) -> None:
    """Answer, cards, wall clock, findings."""
    summary, shapes = recording.ask("summary", state.options), recording.ask("shapes", state.options)
    st.markdown(f"**{plain(sentence.answer(summary))}**")
    _cards([*cards(summary), *cold_shapes(shapes)])
    panels.warnings(summary)
    _wall(summary, state)
    _findings(summary, state)


def _cards(shown: list[Card]) -> None:
    """Figures, each with its denominator and basis."""
    for first in range(0, len(shown), _ABREAST):
        for column, card in zip(st.columns(_ABREAST), shown[first : first + _ABREAST], strict=False):
            with column.container(border=True, height="stretch"):
                st.metric(plain(card.label), card.value)
                st.caption(plain(", ".join(part for part in (card.note, card.basis) if part)))


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
    title = words.sentence(row["title"])
    lines = [
        f"**{number}. {plain(title[:1].upper() + title[1:])}**: {plain(sentence.finding_cost(row))}, {row['basis']}"
    ]
    lines += [f"{title}: {plain(words.sentence(row[key]))}" for key, title in _DETAILS.items() if row[key]]
    with st.container(border=True):
        st.markdown("  \n".join(lines))
        state.link("Timeline", "Show in the timeline", window=window_text(row["start_ns"], row["end_ns"]))
