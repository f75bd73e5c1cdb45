"""What a team should look at first, ranked by nanoseconds at stake: each with its denominator, why, and what to do.

A rule is a function of `Facts` that returns finding rows; `RULES` is the list of them, one module per theme.
docs/findings.md says of every code what triggers it and what it cannot tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tprof.analyze.findings import artefacts, caches, churn, cold, idle, memory, ranks, records, tuning
from tprof.analyze.findings.facts import Facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.analyze.result import Row

__all__ = ["RULES", "Facts", "findings"]

RULES: Final[tuple[Callable[[Facts], list[Row]], ...]] = (
    *cold.RULES,
    *tuning.RULES,
    *caches.RULES,
    *churn.RULES,
    *ranks.RULES,
    *idle.RULES,
    *memory.RULES,
    *records.RULES,
    *artefacts.RULES,
)


def findings(facts: Facts) -> list[Row]:
    """Findings, largest cost first; what cannot be judged costs nothing and comes last.

    Returns:
        Rows of code, title, cost_ns, share (of `of`), of, kernel, shape_key, why, fix, basis, count, start_ns, end_ns
        and window (the same as `--window` takes it). Costs overlap; none exceeds the time from start_ns to end_ns.
    """
    found = [row for rule in RULES for row in rule(facts)]
    # nothing at stake, nothing to do
    found = [row for row in found if row["cost_ns"] or row["basis"] == "unattributed"]
    return sorted(found, key=lambda row: (-row["cost_ns"], row["code"], row["start_ns"]))
