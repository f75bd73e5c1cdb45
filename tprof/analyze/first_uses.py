"""First uses of compiled kernels, compiled variants, and timed candidates: where, at what cost, for whom, and why."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Final

from tprof.analyze.rows import rows_inside
from tprof.variants import why_new

if TYPE_CHECKING:
    from tprof.analyze.asked import Asked
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.result import Row
    from tprof.model import Trace

_FACTS: Final = ("registers", "spills", "shared_bytes", "binary_bytes", "hash")


def first_use_rows(attribution: Attribution, window: tuple[int, int], asked: Asked) -> list[Row]:
    """First uses in the window, each with the stages of its compile and what is known of its variant."""
    variants = attribution.trace.specializations.to_pylist()
    found = []
    for row in rows_inside(attribution.trace, "compiles", window):
        variant = {} if row["specialization"] is None else variants[row["specialization"]]
        found.append(_placed(row, attribution) | {
            **{f"{stage}_ns": ns for stage, ns in json.loads(row["stages"] or "{}").items()},
            **{fact: variant.get(fact) for fact in _FACTS},
            "source": _source_of(variant),
            **asked.of(row["thread"], row["start_ns"], row["end_ns"]),
        })  # fmt: skip
    return found


def specialization_rows(attribution: Attribution, window: tuple[int, int], asked: Asked) -> list[Row]:
    """One row per variant first asked for in the window, in time order; empty without a recorder."""
    trace = attribution.trace
    uses = {c["specialization"]: c for c in trace.compiles.to_pylist() if c["specialization"] is not None}
    rows = [row | {"use": uses.get(i)} for i, row in enumerate(trace.specializations.to_pylist())]
    inside = [row for row in rows if row["start_ns"] is not None and window[0] <= row["start_ns"] <= window[1]]
    inside.sort(key=lambda row: row["start_ns"])
    return [{"at_ns": row["start_ns"] - attribution.extent[0], **_variant(row, row["use"], asked)} for row in inside]


def _variant(row: Row, use: Row | None, asked: Asked) -> Row:
    changes = None if row["changes"] is None else json.loads(row["changes"])
    return {
        "kernel": kernel_of(row),
        "why": why_new(changes, json.loads(row["scalars"] or "{}")),
        "wall_ns": use["end_ns"] - use["start_ns"] if use else None,
        **({} if use is None else asked.of(use["thread"], use["start_ns"], use["end_ns"])),
        **{fact: row[fact] for fact in ("cache_hit", *_FACTS)},
        "source": _source_of(row),
        "function": row["function"],
        "pid": row["pid"],
        "changes": changes,
    }


def candidate_rows(attribution: Attribution, window: tuple[int, int]) -> list[Row]:
    """Candidates that were timed in the window; `compile_ns` of each is what made it usable, its load included."""
    trace = attribution.trace
    spent: Counter[int | None] = Counter()
    for use in trace.compiles.select(["candidate", "start_ns", "end_ns"]).to_pylist():
        spent[use["candidate"]] += use["end_ns"] - use["start_ns"]
    rows = rows_inside(trace, "candidates", window)
    return [_placed(row, attribution) | {"compile_ns": spent[row["row"]]} for row in rows]


def _source_of(variant: Row) -> str | None:
    """`file:line` of a variant's function, where known."""
    return f"{variant['file']}:{variant['line']}" if variant.get("file") else None


def kernel_of(variant: Row) -> str:
    """Name of a variant on the device; of one that was never loaded, that of its function."""
    return str(variant["kernel"] or variant["function"].rsplit(".", 1)[-1])


def thread_label(trace: Trace, thread: int) -> str:
    """`pid/tid`, with the thread's name where it has one."""
    row = trace.threads.slice(thread, 1).to_pylist()[0]
    return f"{row['pid']}/{row['tid']}" + (f" {row['name']}" if row["name"] else "")


def _placed(row: Row, attribution: Attribution) -> Row:
    """With its begin counted from the first event of the trace, as `--window` takes it, its duration and thread."""
    named = {"thread": thread_label(attribution.trace, row["thread"]), "wall_ns": row["end_ns"] - row["start_ns"]}
    return {"at_ns": row["start_ns"] - attribution.extent[0], **row, **named}
