"""Several processes: the same kernel compiled by each, and a cold one that the others wait for."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.ranges import process_of
from tprof.analyze.devices import process_label, ranks_of
from tprof.analyze.findings.facts import Facts, counted, overlap
from tprof.analyze.result import few
from tprof.analyze.rows import labelled
from tprof.intervals import NONE
from tprof.model import codes, ints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tprof.analyze.result import Row


def compiled_by_many(facts: Facts) -> Iterator[Row]:
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
    yield facts.finding(
        "compiled-by-many",
        f"the same kernels were compiled by {len(processes)} processes",
        facts.spent(again),
        why=f"{counted(len(again), 'compile')} repeated another's: {few(row['kernel'] for row in again)}",
        fix="let one rank compile first, then a barrier; one local TRITON_CACHE_DIR for the ranks of a machine",
        basis="recorded" if all(row["hash"] for row in again) else "inferred",
        count=len(again),
    )


def _last_events(facts: Facts) -> np.ndarray:
    """End of the last host event of each process, shape (processes,)."""
    process = process_of(facts.trace)
    ends = np.zeros(int(process.max(initial=0)) + 1, np.int64)
    if facts.trace.host.num_rows:
        np.maximum.at(ends, process[ints(facts.trace.host, "thread")], ints(facts.trace.host, "end_ns"))
    return ends


def skew(facts: Facts) -> Iterator[Row]:
    """Collectives that began late on one rank because it was cold: the others waited for it."""
    if any(note.code == "no-epoch" for note in facts.trace.notes):
        return  # clocks that are not aligned tell nothing of who was late
    process_at = process_of(facts.trace)
    spans, processes = facts.spans, process_at.tolist()
    for process, late in _late(facts, process_at).items():
        cold = facts.spent(span for span in spans if processes[span["thread"]] == process)
        cost = overlap(facts.set_of(late), cold)
        yield facts.finding(
            "rank-skew",
            f"{_name(facts, processes.index(process))} was cold while the other ranks waited in a collective",
            cost,
            why=f"it was cold before {counted(len(cost[0]), 'collective')} that it began last",
            fix="warm up every rank, then a barrier, before the first collective that is timed",
            basis="inferred",
            count=len(cost[0]),
        )


def _late(facts: Facts, process_at: np.ndarray) -> dict[int, list[tuple[int, int]]]:
    """Per process, from the first rank's begin to its own of the collectives that it began last."""
    device = facts.trace.device
    launch = ints(device, "launch")
    rows = np.flatnonzero(labelled(device, "path", {"collective"}) & (launch != NONE))
    name, start = codes(device, "name")[0][rows], ints(device, "start_ns")[rows]
    process = process_at[ints(facts.trace.host, "thread")[launch[rows]]]
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for kernel in np.unique(name).tolist():
        ranks = np.unique(process[name == kernel])
        each = [np.sort(start[(name == kernel) & (process == rank)]) for rank in ranks]
        if len(each) < 2 or len({len(s) for s in each}) > 1:  # the n-th of each rank is one collective, if none is lost
            continue
        begun = np.stack(each)
        places = ranks[begun.argmax(0)], begun.min(0), begun.max(0)
        for rank, first, last in zip(*(column.tolist() for column in places), strict=True):
            found[rank].append((first, last))
    return found


def _name(facts: Facts, thread: int) -> str:
    """The process of a thread, by its rank where it has one."""
    row = facts.trace.threads.slice(thread, 1).to_pylist()[0]
    return process_label(row["pid"], ranks_of(facts.trace).get((row["host"], row["pid"])))
