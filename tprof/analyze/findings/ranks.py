"""Several processes: the same kernel compiled by each, and a cold one that the others wait for."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.ranges import process_of
from tprof.analyze.devices import process_label
from tprof.analyze.findings.facts import MATTERS, Facts, counted, overlap
from tprof.analyze.result import few
from tprof.events import COLD_PHASES
from tprof.intervals import NONE, total, union
from tprof.model import codes, ints

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.analyze.busy import Set
    from tprof.analyze.result import Row


def compiled_by_many(facts: Facts) -> list[Row]:
    """Kernels that a process compiled although another one, still running, had begun to before."""
    ends = _last_events(facts)
    first: dict[str, Row] = {}
    again, processes = [], set()
    for row in sorted(facts.compiles, key=lambda c: c["start_ns"]):
        if row["cache_hit"] is True or not row["kernel"]:
            continue
        before = first.setdefault(row["hash"] or row["kernel"], row)["process"]
        if row["process"] != before and row["start_ns"] < ends[before]:
            again.append(row)
            processes |= {before, row["process"]}
    cost = facts.set_of((row["start_ns"], row["end_ns"]) for row in again)
    if not again or total(*cost) < MATTERS * facts.wall_ns:
        return []
    return [
        facts.finding(
            "compiled-by-many",
            f"the same kernels were compiled by {len(processes)} processes",
            cost,
            "window",
            facts.wall_ns,
            why=f"{counted(len(again), 'compile')} repeated another's: {few(row['kernel'] for row in again)}",
            fix="let one rank compile first, then a barrier; one local TRITON_CACHE_DIR for the ranks of a machine",
            basis="recorded" if all(row["hash"] for row in again) else "inferred",
            count=len(again),
        )
    ]


def _last_events(facts: Facts) -> np.ndarray:
    """End of the last host event of each process, shape (processes,)."""
    process = process_of(facts.trace)
    ends = np.zeros(int(process.max(initial=0)) + 1, np.int64)
    if facts.trace.host.num_rows:
        np.maximum.at(ends, process[ints(facts.trace.host, "thread")], ints(facts.trace.host, "end_ns"))
    return ends


def skew(facts: Facts) -> list[Row]:
    """Collectives that began late on one rank because it was cold: the others waited for it."""
    if any(note.code == "no-epoch" for note in facts.trace.notes):
        return []  # clocks that are not aligned tell nothing of who was late
    found = []
    for process, late in _late(facts).items():
        cost = overlap(facts.set_of(late), _cold_of(facts, process))
        if total(*cost) < max(MATTERS * facts.wall_ns, 1):
            continue
        found.append(
            facts.finding(
                "rank-skew",
                f"{_name(facts, process)} was cold while the other ranks waited in a collective",
                cost,
                "window",
                facts.wall_ns,
                why=f"it was cold before {counted(len(cost[0]), 'collective')} that it began last",
                fix="warm up every rank, then a barrier, before the first collective that is timed",
                basis="inferred",
                count=len(cost[0]),
            )
        )
    return found


def _late(facts: Facts) -> dict[int, list[tuple[int, int]]]:
    """Per process, from the first rank's begin to its own of the collectives that it began last."""
    device = facts.trace.device
    path, paths = codes(device, "path")
    name, _ = codes(device, "name")
    launch = ints(device, "launch")
    wanted = (path == (paths.index("collective") if "collective" in paths else len(paths))) & (launch != NONE)
    rows = np.flatnonzero(wanted)
    start = ints(device, "start_ns")[rows]
    process = process_of(facts.trace)[ints(facts.trace.host, "thread")[launch[rows]]]
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for kernel in np.unique(name[rows]).tolist():
        of = name[rows] == kernel
        ranks = np.unique(process[of])
        each = [np.sort(start[of & (process == rank)]) for rank in ranks]
        if len(each) < 2 or len({len(s) for s in each}) > 1:  # the n-th of each rank is one collective, if none is lost
            continue
        begun = np.stack(each)
        for rank, first, last in zip(
            ranks[begun.argmax(0)].tolist(), begun.min(0).tolist(), begun.max(0).tolist(), strict=True
        ):
            found[rank].append((first, last))
    return found


def _cold_of(facts: Facts, process: int) -> Set:
    """Instants at which any thread of a process was cold."""
    process_at = process_of(facts.trace)
    phase, phases = facts.labels("spans", "phase")
    cold = np.isin(phase, [i for i, p in enumerate(phases) if p in COLD_PHASES])
    mine = cold & (process_at[ints(facts.trace.spans, "thread")] == process)
    start, end = facts.times("spans")
    return union(start[mine], end[mine])


def _name(facts: Facts, process: int) -> str:
    thread = int(np.flatnonzero(process_of(facts.trace) == process)[0])
    row = facts.trace.threads.slice(thread, 1).to_pylist()[0]
    ranks = {(p["host"], p["pid"]): p["rank"] for p in facts.trace.processes.to_pylist()}
    return process_label(row["pid"], ranks.get((row["host"], row["pid"])))


RULES: Final[tuple[Callable[[Facts], list[Row]], ...]] = (compiled_by_many, skew)
