"""Compiled variants that a recorder saw: when each was first asked for, and what about it was new."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.result import Row


def specialization_rows(attribution: Attribution, window: tuple[int, int]) -> list[Row]:
    """One row per variant first asked for in the window, in time order; empty without a recorder."""
    rows = [r for r in attribution.trace.specializations.to_pylist() if window[0] <= (r["start_ns"] or 0) <= window[1]]
    return [
        {
            "at_ns": row["start_ns"] - attribution.extent[0],
            "kernel": row["kernel"] or row["function"].rsplit(".", 1)[-1],
            "why": why_new(row["changes"]),
            "cache_hit": row["cache_hit"],
            "registers": row["registers"],
            "spills": row["spills"],
            "shared_bytes": row["shared_bytes"],
            "binary_bytes": row["binary_bytes"],
            "source": f"{row['file']}:{row['line']}",
            "function": row["function"],
            "pid": row["pid"],
        }
        for row in sorted(rows, key=lambda r: r["start_ns"] or 0)
    ]


def why_new(changes: str | None) -> str:
    """What differs from the most similar earlier variant: each argument, constant or option with both its values."""
    found = json.loads(changes) if changes else []
    if not found:
        return "asked for the first time in this process, or again"
    return "; ".join(f"{c['name']}: {_plain(c['before'])} -> {_plain(c['after'])}" for c in found)


def _plain(text: str) -> str:
    """Triton's spelling of a specialization in words."""
    return str(text).replace("tt.divisibility=16", "divisible by 16")
