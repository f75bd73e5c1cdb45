"""The page Batch: what `tprof batch` found, and the way to the pages of each recording that is still there."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

import streamlit as st

from tprof.analyze.result import Result, few
from tprof.batch.work import TABLES
from tprof.present import figures_batch, units, views
from tprof.present.cards import batch_cards
from tprof_app import sources
from tprof_app.panels import cards, chart, downloads, finding, heading, panel, table
from tprof_app.state import one_of, segments, window_text
from tprof_app.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.analyze import Row
    from tprof_app.batches import Batch
    from tprof_app.state import State

_PAGES: Final = ("Overview", "Cold start", "Timeline", "Requests")
_OWN: Final = dict.fromkeys(("part", "job", "trace", "table"))  # parameters of this page, which others do not know
_GONE: Final = "The recording is gone, or this server does not offer it; what the batch keeps of it is below."
_QUIET: Final = "Nothing stands out between the sources: no process was late, and none compiled what another had."
_ALONE: Final = "No two processes ran at one time, so there is nothing to compare."
_NO_TWICE: Final = "No kernel was compiled by several processes of a job."
_NO_SHAPE: Final = "No call of a compiled kernel lies in these recordings."
_NO_BUCKET: Final = "No bucket was declared in the settings of the folder where the batch ran."
_NO_REQUEST: Final = "No range of these recordings is a request; name them: `tprof batch --range GLOB`."


def page(batch: Batch, state: State) -> None:
    """What it is of, then one part of the report."""
    result = batch.report
    st.caption(f"What `tprof batch` printed, from {plain(PurePath(*state.paths) / 'overall.json')}")
    cards(batch_cards(result.payload["totals"]))
    part = segments(state, "part", "Show", list(_PARTS), label_visibility="collapsed")
    _PARTS[part](batch, result, state)


def _findings(_: Batch, result: Result, state: State) -> None:
    """Who was late, who compiled again."""
    heading(
        "Between the sources", "Processes that ran at one time are compared. Costs overlap: they do not add up.", ""
    )
    rows, paths = result.tables["findings"], _paths(result)
    if not rows:
        st.success(_QUIET)
    for number, row in enumerate(rows, 1):
        with st.container(border=True):
            finding(number, row, f"{units.duration(row['cost_ns'])}, {units.share(row['share'])} of {row['of']}")
            if row["trace"] and (label := sources.label_of(paths[row["trace"]], state.served)):
                state.link("Idle", "What its devices waited for", source=label, **_OWN)
    _ranks(result, state)
    panel(result, "duplicates", "", empty=_NO_TWICE)


def _ranks(result: Result, state: State) -> None:
    """The processes of one job, which the address names if there are several."""
    jobs: dict[str, list[Row]] = {}
    for row in result.tables["ranks"]:
        jobs.setdefault(str(row["job"]), []).append(row)
    if not jobs:
        panel(result, "ranks", "", empty=_ALONE)
        return
    view = views.view(result, "ranks")
    heading(view.heading, view.caption, "")
    job = one_of(state, "job", "Job", list(jobs), format_func=lambda job: _job(job, jobs[job])) if len(jobs) > 1 else ""
    rows = jobs[job] if job else result.tables["ranks"]
    figure = figures_batch.ranks(rows)
    chart(figure, "Device time of each process, and how long others waited for it", "batch-ranks-figure")
    table(result, "ranks", rows=rows, key="batch-ranks-table")
    downloads(result, "ranks", figure)


def _job(number: str, rows: list[Row]) -> str:
    traces = few(row["trace"] for row in rows)
    return f"{number}: {len(rows)} processes of {traces}"


def _shapes(_: Batch, result: Result, __: State) -> None:
    rows = result.tables["shapes"]
    figure = figures_batch.shapes(rows) if any(row["cold_ns"] for row in rows) else None
    panel(result, "shapes", "", figure=figure, alt="Cold time that was charged to each shape", empty=_NO_SHAPE)
    panel(result, "buckets", "", empty=_NO_BUCKET)


def _requests(_: Batch, result: Result, state: State) -> None:
    """The worst; a chosen one leads to its window."""
    rows = result.tables["requests"]
    if not rows:
        panel(result, "requests", "", empty=_NO_REQUEST)
        return
    heading("Requests that paid most for cold start, then the longest", "Select one to see it.", "")
    figure = figures_batch.requests(rows)
    chart(figure, "Wall time of the worst requests, and how much of it was cold", "batch-requests-figure")
    if row := table(result, "requests", key="batch-requests-table", pick=True):
        window = window_text(row["start_ns"], row["start_ns"] + row["wall_ns"])
        _links(_paths(result)[row["trace"]], state, window)
    downloads(result, "requests", figure)


def _sources(batch: Batch, result: Result, state: State) -> None:
    """Every source on a line; a chosen one leads to its pages, and shows what the data set holds of it."""
    failed = [{**row, **{k: sources.without_folder(row[k], state.served) for k in ("source", "message")}}
              for row in result.tables["failed"]]  # fmt: skip
    if failed:
        panel(Result("batch", {"failed": failed}, {}), "failed", "")
    panel(result, "sources", "")
    rows = {row["trace"]: row for row in result.tables["sources"]}
    if not rows:
        return
    heading("One source", "Its pages, where the recording is still there, and what the batch keeps of it.", "")
    row = rows[one_of(state, "trace", "Source", list(rows))]
    _links(row["source"], state)
    _kept(batch, row, state)


def _links(path: str, state: State, window: str | None = None) -> None:
    """To the pages of a recording, where it is still there."""
    if not (label := sources.label_of(path, state.served)):
        st.info(_GONE, icon=":material/info:")
        return
    with st.container(horizontal=True):
        st.markdown(f"**{plain(PurePath(path).name)}**")
        for title in _PAGES:
            state.link(title, title, source=label, window=window, **_OWN)


def _kept(batch: Batch, source: Row, state: State) -> None:
    """One of its tables, as the verb of one source shows it."""
    name = one_of(state, "table", "Table of the data set", list(TABLES))
    title, of = TABLES[name]
    kept = Result(title, {of: batch.rows(name, source["trace"])}, {})
    panel(kept, of, "", empty=f"{source['trace']} has no rows of it.")


def _paths(result: Result) -> dict[str, str]:
    return {row["trace"]: row["source"] for row in result.tables["sources"]}


_PARTS: Final[dict[str, Callable[[Batch, Result, State], None]]] = {
    "Findings": _findings, "Shapes and buckets": _shapes, "Requests": _requests, "Sources": _sources,
}  # fmt: skip
