"""Compiled variants that a recorder saw: what each cost, who asked for it first, and what about it was new."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tprof.analyze.first_uses import VARIANT, source_of
from tprof.variants import why_new

if TYPE_CHECKING:
    from tprof.analyze.asked import Asked
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.result import Row


def specialization_rows(attribution: Attribution, window: tuple[int, int], asked: Asked) -> list[Row]:
    """One row per variant first asked for in the window, in time order; empty without a recorder."""
    trace = attribution.trace
    compiled = {c["specialization"]: c for c in trace.compiles.to_pylist() if c["specialization"] is not None}
    rows = [(row, compiled.get(i)) for i, row in enumerate(trace.specializations.to_pylist())]
    inside = [pair for pair in rows if (at := pair[0]["start_ns"]) is not None and window[0] <= at <= window[1]]
    inside.sort(key=lambda pair: pair[0]["start_ns"])
    return [{"at_ns": row["start_ns"] - attribution.extent[0], **_row(row, use, asked)} for row, use in inside]


def _row(row: Row, use: Row | None, asked: Asked) -> Row:
    changes = None if row["changes"] is None else json.loads(row["changes"])
    return {
        "kernel": row["kernel"] or row["function"].rsplit(".", 1)[-1],
        "why": why_new(changes, json.loads(row["scalars"] or "{}")),
        "wall_ns": use["end_ns"] - use["start_ns"] if use else None,
        **({} if use is None else asked.of(use["thread"], use["start_ns"], use["end_ns"])),
        **{fact: row[fact] for fact in ("cache_hit", *VARIANT)},
        "source": source_of(row),
        "function": row["function"],
        "pid": row["pid"],
        "changes": changes,
    }
