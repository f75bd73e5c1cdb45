"""What a team should look at first, ranked by nanoseconds at stake: each with its denominator, why, and what to do.

A rule is a function of `Facts` that yields finding rows; `RULES` lists them, one module per theme.
docs/findings.md says of every code what triggers it and what it cannot tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tprof.analyze.findings import caches, churn, cold, idle, memory, ranks, records, tuning
from tprof.analyze.findings.facts import MATTERS, Facts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tprof.analyze.result import Row

__all__ = ["RULES", "Facts", "findings"]

RULES: Final[tuple[Callable[[Facts], Iterator[Row]], ...]] = (
    cold.cold_requests, cold.in_requests, cold.outside_requests,
    tuning.repeated, tuning.unbounded_keys, tuning.on_top,
    caches.cache_cold, caches.cache_unwritable, caches.cache_slow,
    churn.churn, ranks.compiled_by_many, ranks.skew, idle.warm_idle, memory.allocator_growth,
    records.lost_kernels, records.hidden_graphs, records.unattributed, records.not_recorded, records.artefacts,
)  # fmt: skip


def findings(facts: Facts) -> list[Row]:
    """Findings, largest cost first; what cannot be judged costs nothing and comes last.

    Returns:
        Rows of code, title, cost_ns, share (of `of`), of, kernel, shape_key, why, fix, basis, count, start_ns, end_ns
        and window (the same as `--window` takes it). Costs overlap; none exceeds the time from start_ns to end_ns.
    """
    found = [row for rule in RULES for row in rule(facts) if _matters(row)]
    return sorted(found, key=lambda row: (-row["cost_ns"], row["code"], row["start_ns"]))


def _matters(row: Row) -> bool:
    """Whether anything is at stake: of the whole window at least a hundredth."""
    if row["basis"] == "unattributed":
        return True
    return row["cost_ns"] > 0 and (row["of"] != "window" or row["share"] >= MATTERS)
