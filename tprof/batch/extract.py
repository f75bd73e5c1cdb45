"""Of one trace, what tells its processes from those of other recordings: work, compiles, collectives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tprof.events import COLD_PHASES
from tprof.intervals import total, union
from tprof.model import codes, ints

if TYPE_CHECKING:
    from tprof.analyze.busy import Set
    from tprof.model import Trace

_WHO = {"host": pa.string(), "pid": pa.int64()}
_TIMES = dict.fromkeys(("utc_start_ns", "wall_ns", "cold_ns", "work_ns", "collective_ns"), pa.int64())
_PROCESSES = pa.schema({**_WHO, "rank": pa.int64(), **_TIMES})
_COMPILES = pa.schema({**_WHO, "kernel": pa.string(), "hash": pa.string(), "wall_ns": pa.int64(), "basis": pa.string()})
_COLLECTIVES = pa.schema(
    {**_WHO, "name": pa.dictionary(pa.int32(), pa.string()), "utc_start_ns": pa.int64(), "cold_ns": pa.int64()}
)


@dataclass(frozen=True)
class Owned:
    """Whose the rows of a trace are: numbers of rows of `processes`, -1 for nobody's."""

    trace: Trace

    @cached_property
    def thread(self) -> np.ndarray:
        """Of each thread, as a recorder says, else by machine and process id."""
        rows = self.trace.processes.to_pylist()
        number = {(row["host"], row["pid"]): i for i, row in enumerate(rows)}
        said = self.trace.threads.select(["process", "host", "pid"]).to_pylist()
        found = [number.get((t["host"], t["pid"]), -1) if t["process"] is None else t["process"] for t in said]
        return np.array(found, np.int64)

    @cached_property
    def host(self) -> np.ndarray:
        """Of each host event."""
        return self.thread[ints(self.trace.host, "thread")]

    @cached_property
    def device(self) -> np.ndarray:
        """Of each device event: by its launch, else by its process id."""
        pid, launch = ints(self.trace.device, "pid"), ints(self.trace.device, "launch")
        found = np.full(len(pid), -1)
        for number, process in enumerate(self.trace.processes["pid"].to_pylist()):
            found[pid == process] = number
        linked = launch >= 0
        found[linked] = self.host[launch[linked]]
        return found

    @cached_property
    def collective(self) -> np.ndarray:
        """Whether each device event is a collective."""
        path, paths = codes(self.trace.device, "path")
        return path == (paths.index("collective") if "collective" in paths else len(paths))

    def extent(self, number: int) -> tuple[int, int]:
        """First start and last end of the events of a process; zeros without any."""
        host, device = self.host == number, self.device == number
        start, end = (
            np.concatenate([ints(self.trace.host, name)[host], ints(self.trace.device, name)[device]])
            for name in ("start_ns", "end_ns")
        )
        return (int(start.min()), int(end.max())) if len(start) else (0, 0)

    def cold(self, number: int) -> Set:
        """Instants at which any thread of a process was cold."""
        phase, phases = codes(self.trace.spans, "phase")
        cold = np.isin(phase, [i for i, p in enumerate(phases) if p in COLD_PHASES])
        mine = cold & (self.thread[ints(self.trace.spans, "thread")] == number)
        return union(ints(self.trace.spans, "start_ns")[mine], ints(self.trace.spans, "end_ns")[mine])


def processes(trace: Trace) -> pa.Table:
    """One row per process: extent of its events, its cold time, and its device time in collectives and in the rest."""
    owned = Owned(trace)
    length = ints(trace.device, "end_ns") - ints(trace.device, "start_ns")
    rows = []
    for number, process in enumerate(trace.processes.to_pylist()):
        start, end = owned.extent(number)
        mine, cold = owned.device == number, owned.cold(number)
        row = {
            **{name: process[name] for name in ("host", "pid", "rank")},
            "utc_start_ns": None if trace.epoch_ns is None else trace.epoch_ns + start,
            "wall_ns": end - start,
            "cold_ns": total(*cold),
            "work_ns": int(length[mine & ~owned.collective].sum()),
            "collective_ns": int(length[mine & owned.collective].sum()),
        }
        rows += [row] if end > start else []
    return pa.Table.from_pylist(rows, _PROCESSES)


def compiles(trace: Trace) -> pa.Table:
    """One row per compile that no cache spared, with the name of its folder in Triton's cache where recorded."""
    process, known = Owned(trace).thread, trace.processes.to_pylist()
    hashes = [*trace.specializations["hash"].to_pylist(), None]
    rows = [
        {
            **{name: known[process[r["thread"]]][name] for name in ("host", "pid")},
            "kernel": r["kernel"],
            "hash": hashes[-1 if r["specialization"] is None else r["specialization"]],
            "wall_ns": r["end_ns"] - r["start_ns"],
            "basis": r["basis"],
        }
        for r in trace.compiles.to_pylist()
        if r["cache_hit"] is not True and r["kernel"]
    ]
    return pa.Table.from_pylist(rows, _COMPILES)


def collectives(trace: Trace) -> pa.Table:
    """One row per collective in order, with the cold time of its process since the one before."""
    owned, start, name = Owned(trace), ints(trace.device, "start_ns"), trace.device["name"]
    parts = [_COLLECTIVES.empty_table()]
    for number, process in enumerate(trace.processes.to_pylist()):
        rows = np.flatnonzero(owned.collective & (owned.device == number))
        rows = rows[np.argsort(start[rows], kind="stable")]
        begun, known = start[rows], trace.epoch_ns is not None
        columns = {
            "host": pa.array([process["host"]] * len(rows), pa.string()),
            "pid": pa.array(np.full(len(rows), process["pid"])),
            "name": name.take(pa.array(rows)),
            "utc_start_ns": pa.array(begun + (trace.epoch_ns or 0), mask=np.full(len(rows), not known)),
            "cold_ns": pa.array(np.diff(_before(owned.cold(number), begun), prepend=0)),
        }
        parts.append(pa.table(columns).cast(_COLLECTIVES))
    return pa.concat_tables(parts).unify_dictionaries()


def _before(cold: Set, instants: np.ndarray) -> np.ndarray:
    """Cold time before each of some instants, ns."""
    start, end = cold
    if not len(start):
        return np.zeros(len(instants), np.int64)
    done = np.concatenate([[0], np.cumsum(end - start)])
    last = np.maximum(np.searchsorted(start, instants, side="right") - 1, 0)
    return done[last] + np.clip(np.minimum(instants, end[last]) - start[last], 0, None)
