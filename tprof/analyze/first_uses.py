"""First uses of compiled kernels and timed candidates: where, at what cost, for whom."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tprof.analyze.asked import Asked
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.result import Row
    from tprof.model import Trace

VARIANT: Final = ("registers", "spills", "shared_bytes", "binary_bytes", "hash")


def first_use_rows(attribution: Attribution, window: tuple[int, int], asked: Asked) -> list[Row]:
    """First uses in the window, each with the stages of its compile and what is known of its variant."""
    variants = attribution.trace.specializations.to_pylist()
    found = []
    for row in rows_inside(attribution.trace, "compiles", window):
        variant = {} if row["specialization"] is None else variants[row["specialization"]]
        found.append(_placed(row, attribution) | {
            **{f"{stage}_ns": ns for stage, ns in json.loads(row["stages"] or "{}").items()},
            **{fact: variant.get(fact) for fact in VARIANT},
            "source": source_of(variant),
            **asked.of(row["thread"], row["start_ns"], row["end_ns"]),
        })  # fmt: skip
    return found


def candidate_rows(attribution: Attribution, window: tuple[int, int]) -> list[Row]:
    """Candidates that were timed in the window; `compile_ns` of each is what made it usable, its load included."""
    trace = attribution.trace
    spent: dict[int, int] = {}
    for use in trace.compiles.select(["candidate", "start_ns", "end_ns"]).to_pylist():
        if use["candidate"] is not None:
            spent[use["candidate"]] = spent.get(use["candidate"], 0) + use["end_ns"] - use["start_ns"]
    rows = rows_inside(trace, "candidates", window)
    return [_placed(row, attribution) | {"compile_ns": spent.get(row["row"], 0)} for row in rows]


def source_of(variant: Row) -> str | None:
    """`file:line` of a variant's function, where known."""
    return f"{variant['file']}:{variant['line']}" if variant.get("file") else None


def rows_inside(trace: Trace, table: str, window: tuple[int, int]) -> list[Row]:
    """Rows of `compiles` or `candidates` that end inside the window, each with its place in the table as `row`."""
    return [
        {"row": i, **r}
        for i, r in enumerate(getattr(trace, table).to_pylist())
        if window[0] < r["end_ns"] <= window[1] or (r["end_ns"] == window[0] == r["start_ns"])
    ]


def thread_label(trace: Trace, thread: int) -> str:
    """`pid/tid`, with the thread's name where it has one."""
    row = trace.threads.slice(thread, 1).to_pylist()[0]
    return f"{row['pid']}/{row['tid']}" + (f" {row['name']}" if row["name"] else "")


def _placed(row: Row, attribution: Attribution) -> Row:
    """With its begin counted from the first event of the trace, as `--window` takes it, its duration and thread."""
    named = {"thread": thread_label(attribution.trace, row["thread"]), "wall_ns": row["end_ns"] - row["start_ns"]}
    return {"at_ns": row["start_ns"] - attribution.extent[0], **row, **named}
