"""Writes `columns.md`, every table, column and word of a trace, and `result-columns.md`, the same of the answers."""

from __future__ import annotations

from pathlib import Path

import tprof
from tprof import events
from tprof.present.reference import result_table, trace_table

DOCS = Path(__file__).resolve().parent
VERBS = ("summary", "idle", "cold", "autotune", "shapes", "requests", "kernels", "advise")

HEAD = """# Tables and columns

Written by `make docs` from `tprof.events`; do not edit. Times are integer nanoseconds on the trace's own clock. A null
means "not known" and never becomes a zero. `label` is a string that repeats (dictionary-encoded), `int3` three int32.
`trace.frame("host")` gives a table as a DataFrame with Arrow dtypes.
"""

WORDS = {
    "Phases: cold": events.COLD_PHASES,
    "Phases: warm": events.WARM_PHASES,
    "Phases: a device's idle only": events.DEVICE_IDLE_PHASES,
    "Purposes, in the order in which overlapping device work counts": events.PURPOSES,
    "Paths": events.PATHS,
    "Basis": events.BASES,
    "Kinds of host events": events.HOST_KINDS,
    "Kinds of device events": events.DEVICE_KINDS,
}


def render() -> str:
    """The whole page."""
    words = [f"- {title}: {', '.join(f'`{word}`' for word in values)}" for title, values in WORDS.items()]
    tables = [trace_table(name, columns) for name, columns in events.TABLES.items()]
    return "\n".join([HEAD, "## Words\n", *words, "", *tables])


RESULTS_HEAD = """# Columns of the answers

Written by `make docs`; do not edit. What `--format csv`, `parquet` and `json` have, and `.tables` in Python, by
verb and `--table`. A null means "not known". Every share is a fraction, 0 to 1, of what stands under *of*.
"""


def render_results() -> str:
    """The page of the answers, as they are of one of the samples."""
    trace = tprof.load(DOCS.parent / "sample_traces" / "cold-torch", cache=False)
    answers = {verb: getattr(trace, verb)() for verb in VERBS}
    tables = [
        result_table(f"{verb}: {name}", answer, name) for verb, answer in answers.items() for name in answer.tables
    ]
    return "\n".join([RESULTS_HEAD, *tables])


PAGES = {"columns.md": render, "result-columns.md": render_results}

if __name__ == "__main__":
    for name, made in PAGES.items():
        (DOCS / name).write_text(made())
