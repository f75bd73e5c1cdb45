"""The page Requests: where the time of each went, latency with and without cold start, and what caused it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import streamlit as st

from tprof.present import columns, figures, figures_requests, units, views
from tprof.present.names import clean
from tprof_app import choices
from tprof_app.panels import chart, downloads, heading, panel, table
from tprof_app.state import one_of, segments, text_box, window_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.analyze import Result
    from tprof.analyze.result import Row
    from tprof_app.recording import Recording
    from tprof_app.state import State

_DRAWN: Final = 24
_NAMED: Final = 8
_NO_REQUEST: Final = (
    "No range here is a request. Name the ranges that are, as `--range` takes them (`step*`), or mark them: "
    "`with tprof.request(name):`."
)
_ALL_WARM: Final = "No request here has a cold part."
_ORDERS: Final[dict[str, Callable[[Row], int]]] = {
    "In time": lambda row: row["start_ns"],
    "Longest first": lambda row: -row["wall_ns"],
    "Most cold tax first": lambda row: -row["cold_tax_ns"],
}


def page(recording: Recording, state: State) -> None:
    """Budgets, latency, causes, the job."""
    text_box(state, "range", "Ranges that are requests", placeholder="request*, else ProfilerStep*")
    result = recording.ask("requests", choices.bucketed(state.options))
    if not result.tables["requests"]:
        _none(recording)
        panel(result, "job", state.command("requests"))
        return
    _budgets(result, state)
    _latency(result, state)
    panel(result, "first_steady", state.command("requests"))
    panel(result, "causes", state.command("requests"), empty=_ALL_WARM)
    if result.tables["buckets"]:
        panel(result, "buckets", state.command("requests"))
    panel(result, "job", state.command("requests"))


def _none(recording: Recording) -> None:
    """What could be a request."""
    st.info(_NO_REQUEST, icon=":material/info:")
    if names := recording.trace.range_names()[:_NAMED]:
        st.caption("Ranges of the recording, the most frequent first:")
        st.text("\n".join(map(clean, names)))


def _budgets(result: Result, state: State) -> None:
    """Stacked bars, and the table; a chosen request leads to its window."""
    view, rows = views.view(result, "requests"), result.payload["requests"]
    heading(view.heading, f"{view.caption} Select one to see it.", state.command("requests"))
    with st.container(horizontal=True):
        order = segments(state, "order", "Order of the bars", list(_ORDERS))
        share = segments(state, "bars", "Length of the bars", ("Time", "Share of the request")) != "Time"
    drawn = sorted(rows, key=_ORDERS[order])[:_DRAWN]
    named = [row | {"name": choices.request_name(row)} for row in drawn]
    figure = figures.requests(named, normalise=share, or_load=columns.or_load(result))
    cold = sum(row["cold_tax_ns"] > 0 for row in rows)
    chart(
        figure,
        f"Wall time of {len(drawn)} of {len(rows)} requests by phase; {cold} have a cold part",
        "requests-figure",
    )
    if len(drawn) < len(rows):
        st.caption(f"{len(drawn)} of {units.count(len(rows))} requests are drawn; the table has all.")
    picked = table(result, "requests", key="requests-table", pick=True)
    if picked:
        window = window_text(picked["start_ns"], picked["start_ns"] + picked["wall_ns"])
        with st.container(horizontal=True):
            state.link("Cold start", "What was cold in it", window=window)
            state.link("Timeline", "See it in the timeline", window=window)
    downloads(result, "requests", figure)


def _latency(result: Result, state: State) -> None:
    """Percentiles of all requests, or of those of one name."""
    view, rows = views.view(result, "latency"), result.tables["latency"]
    heading(view.heading, view.caption, state.command("requests", "--format", "csv", "--table", "latency"))
    names = list(dict.fromkeys(row["name"] for row in rows))
    name = one_of(state, "latency", "Requests", names) if len(names) > 1 else names[0]
    figure = figures_requests.latency([row for row in rows if row["name"] == name])
    chart(figure, "Percentiles of latency: all requests, less their cold tax, and warm ones only", "latency-figure")
    table(result, "latency", key="latency-table")
    downloads(result, "latency", figure)
