"""Device memory that requests had to wait for."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.calls import ALLOC
from tprof.analyze.findings.facts import MATTERS, Facts, counted, inside, overlap
from tprof.analyze.result import few
from tprof.intervals import total, union

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.analyze.result import Row


def allocator_growth(facts: Facts) -> list[Row]:
    """Requests during which memory was allocated from the driver: the caching allocator had to grow."""
    code, names = facts.labels("host", "name")
    gives = [i for i, name in enumerate(names) if "Free" in name or "Unmap" in name]
    rows = np.flatnonzero((facts.calls == ALLOC) & ~np.isin(code, gives))
    start, end = facts.times("host")
    spent = union(start[rows], end[rows])
    began, wall = (np.array([r[key] for r in facts.requests], np.int64) for key in ("start_ns", "wall_ns"))
    grew = inside(spent, began, began + wall) > MATTERS * wall
    hit = [facts.requests[i] for i in np.flatnonzero(grew)]
    served = facts.during(hit)
    if not total(*served):  # an empty window lies in requests, too
        return []
    calls = Counter(code[rows[(start[rows] < served[1][-1]) & (end[rows] > served[0][0])]].tolist())
    return [
        facts.finding(
            "allocator-growth",
            f"memory was allocated from the driver in {counted(len(hit), 'request')}",
            overlap(spent, served),
            "requests' wall time",
            total(*served),
            why=f"calls: {few(f'{names[c]} ({n:,})' for c, n in calls.most_common(3))}",
            fix="serve the largest shape once before `tprof.ready()`; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            count=len(hit),
        )
    ]


RULES: Final[tuple[Callable[[Facts], list[Row]], ...]] = (allocator_growth,)
