"""Device memory that requests had to wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tprof.align.calls import ALLOC
from tprof.analyze.findings.facts import MATTERS, Facts, counted, inside, overlap
from tprof.analyze.rows import labelled
from tprof.intervals import total, union

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tprof.analyze.result import Row


def allocator_growth(facts: Facts) -> Iterator[Row]:
    """Requests during which memory was allocated from the driver: the caching allocator had to grow."""
    gives = labelled(facts.trace.host, "name", lambda name: "Free" in name or "Unmap" in name)
    rows = np.flatnonzero((facts.calls == ALLOC) & ~gives)
    start, end = (column[rows] for column in facts.times("host"))
    spent = union(start, end)
    began, wall = (np.array([r[key] for r in facts.requests], np.int64) for key in ("start_ns", "wall_ns"))
    grew = inside(spent, began, began + wall) > MATTERS * wall
    hit = [facts.requests[i] for i in np.flatnonzero(grew)]
    served = facts.during(hit)
    if total(*served):  # an empty window lies in requests, too
        yield facts.finding(
            "allocator-growth",
            f"memory was allocated from the driver in {counted(len(hit), 'request')}",
            overlap(spent, served),
            of=("requests' wall time", total(*served)),
            why=f"calls: {facts.most(rows[(start < served[1][-1]) & (end > served[0][0])], 3)}",
            fix="serve the largest shape once before `tprof.ready()`; PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
            count=len(hit),
        )
