"""The page Cold start: what was compiled, looked up, loaded and tuned, step by step, for whom and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import streamlit as st

from tprof.cli.plan import LEFT_OUT
from tprof.prepare.plan import Limits, make
from tprof.present import columns, figures_cold, units
from tprof.read.run_journal import is_run
from tprof_app import choices
from tprof_app.panels import chart, downloads, heading, panel, table
from tprof_app.state import one_of, segments
from tprof_app.text import command

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.analyze import Options, Result
    from tprof.analyze.result import Row
    from tprof_app.recording import Recording
    from tprof_app.state import State

_NOTHING: Final = (
    "Nothing was cold here. A recording that begins before the first use of a kernel shows what it cost: "
    "`tprof record -- python serve.py`."
)
_PLAN: Final = (
    'What is hot and was costly in this recording, as a file: tprof.warmup("plan.json") compiles it and restores the '
    "winners before a service is ready."
)
_NO_READY: Final = (
    "No process said that it was ready. Call `tprof.ready()` at the end of start-up, and record with tprof."
)
_NO_SEARCH: Final = "No search of an autotuner lies in this part of the recording."
_OF_GRAPHS: Final = {
    "recompiles": "No graph was compiled again. Only a recording of tprof tells what Dynamo did.",
    "graph_caches": "No look-up of a compiled graph was recorded. Only a recording of tprof tells of them.",
    "selections": "No choice of Inductor among implementations was recorded (max-autotune makes them).",
}
_OF_KERNELS: Final = {
    "kernels": _NOTHING,
    "specializations": "Which variant was compiled, and why, is known from a recording of tprof: `tprof record`.",
    "first_uses": "No compiled kernel was used for the first time.",
    "cache_misses": "No kernel was compiled again that an earlier process of the recording had compiled.",
}


@dataclass(frozen=True)
class _Asked:
    """What the parts share: the question, its answer, and the command line that prints it."""

    recording: Recording
    state: State
    options: Options
    result: Result
    command: str


def page(recording: Recording, state: State) -> None:
    """One part of the result at a time."""
    with st.container(horizontal=True):
        choices.cold_request(recording, state)
        whole = recording.ask("cold", replace(state.options, window=None))
        kernel = choices.kernel(state, (row["kernel"] for row in whole.tables["kernels"]))
    part = segments(state, "part", "Show", list(_PARTS), label_visibility="collapsed")
    options = choices.about(state.options, kernel)
    line = state.command("cold", *choices.flags(kernel))
    _PARTS[part](_Asked(recording, state, options, recording.ask("cold", options), line))


def _waterfall(asked: _Asked) -> None:
    result = asked.result
    rows, lives = result.tables["waterfall"], asked.recording.ask("shapes", asked.options).tables["timeline"]
    calls = [step for step in lives if step["step"] == "cold call"]
    figure = figures_cold.waterfall(rows, calls, or_load=columns.or_load(result))
    said = f"{units.count(len(rows))} cold stretches in order, a lane per candidate and first use, coloured by phase"
    line = f"{asked.command} --format csv --table waterfall"
    panel(result, "waterfall", line, figure=figure, alt=said, empty=_NOTHING)
    panel(result, "phases", asked.command, empty=_NOTHING)


def _kernels(asked: _Asked) -> None:
    for name, empty in _OF_KERNELS.items():
        panel(asked.result, name, asked.command, empty=empty)


def _searches(asked: _Asked) -> None:
    panel(asked.result, "tunings", asked.command, empty=_NO_SEARCH)
    told, line = asked.recording.ask("autotune", asked.state.options), asked.state.command("autotune")
    if told.tables["tunings"]:
        panel(told, "tunings", line)
        _candidates(told, asked.state)
        panel(told, "kernels", line)


def _candidates(told: Result, state: State) -> None:
    """The candidates of one search."""
    heading("Candidates of a search", "Bar: what the tuner compared, with its spread. Diamond: mean on the device.",
            state.command("autotune"))  # fmt: skip
    searches = {str(i): _search(row) for i, row in enumerate(told.tables["tunings"])}
    chosen = one_of(state, "search", "Search", list(searches), format_func=lambda number: searches[number])
    rows = [row for row in told.tables["candidates"] if row["tuning"] == int(chosen)]
    figure = figures_cold.candidates(rows)
    chart(figure, f"{searches[chosen]}: time of each candidate, best first", "candidates-figure")
    table(told, "candidates", rows=rows, key="candidates-table")
    downloads(told, "candidates", figure)


def _search(row: Row) -> str:
    return f"{row['kernel']} {row['key'] or ''} at {units.duration(row['at_ns'])}"


def _startup(asked: _Asked) -> None:
    result, state = asked.result, asked.state
    rows = result.tables["startup"]
    if state.window or asked.options.kernels:
        st.info("Start-up is told of whole recordings: take the window and the kernel away.", icon=":material/info:")
        return
    pids = list(dict.fromkeys(str(row["pid"]) for row in rows))
    pid = one_of(state, "process", "Process", pids) if len(pids) > 1 else "".join(pids)
    figure = figures_cold.startup([row for row in rows if str(row["pid"]) == pid], or_load=columns.or_load(result))
    alt = f"What the start-up of process {pid} was spent on, in order"
    panel(result, "startup", asked.command, figure=figure, alt=alt, empty=_NO_READY)


def _graphs(asked: _Asked) -> None:
    for name, empty in _OF_GRAPHS.items():
        if name in asked.result.tables:  # `--kernel` leaves them out
            panel(asked.result, name, asked.command, empty=empty)


def _plan(asked: _Asked) -> None:
    """What `tprof plan` writes."""
    heading("Warm-up plan", _PLAN, command("plan", asked.state.paths, "-o", "plan.json"))
    paths = [Path(path) for path in asked.recording.paths]
    if not all(map(is_run, paths)):
        st.info("A plan needs recordings of tprof: `tprof record -- python serve.py`.", icon=":material/info:")
        return
    made = make(paths, Limits(buckets=choices.buckets()))
    variants, winners = (sum(len(getattr(k, part)) for k in made.kernels) for part in ("specializations", "searches"))
    st.markdown(f"{len(made.kernels)} kernels in {variants} variants, {winners} winners of autotuners, "
                f"{len(made.calls)} requests or buckets to run once.")  # fmt: skip
    for why, number in made.left_out.items():
        st.caption(f"Left out: {units.count(number)} variants; {LEFT_OUT[why]}.")
    st.download_button("Download plan.json", made.text(), "plan.json", "application/json", on_click="ignore")
    with st.expander("The plan"):
        st.code(made.text(), language="json", height=400)


_PARTS: Final[dict[str, Callable[[_Asked], None]]] = {
    "Waterfall": _waterfall,
    "Kernels and variants": _kernels,
    "Searches": _searches,
    "Start-up": _startup,
    "Graphs": _graphs,
    "Warm-up plan": _plan,
}
