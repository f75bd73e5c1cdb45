"""Writes `docs/columns.md`, the reference of every table, column and word of a trace, from `tprof.events`."""

from __future__ import annotations

from pathlib import Path

from tprof import events
from tprof.present.reference import trace_table

TARGET = Path(__file__).with_name("columns.md")

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


if __name__ == "__main__":
    TARGET.write_text(render())
