"""Nsight Systems exports, 2020 to 2026, as a `Trace` on the capture's own clock."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tprof import model
from tprof.errors import SourceError
from tprof.read import nsight_checks, nsight_device, nsight_graphs, nsight_host, nsight_meta, nsight_nvtx
from tprof.read import nsight_schema as ns
from tprof.read.detect import detect
from tprof.read.nsight_arrow import ArrowTables
from tprof.read.nsight_rows import Reading, pids, tids
from tprof.read.nsight_strings import Strings
from tprof.read.sqlite import Database

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    import pyarrow as pa

    from tprof.read.columns import Tables

    Progress = Callable[[int, int], None]
    HostRows = tuple[pa.Table, np.ndarray]  # the table, and the globalTid of each thread
    DeviceRows = tuple[pa.Table, list[tuple[int, ...]]]  # the table, and the process and ordinal of each device

_EPOCH_ERROR_NS = 250_000  # widest offset between utcEpochNs + start and the process's own clock that was measured


def read_nsight(path: Path, source: str, progress: Progress | None = None) -> model.Trace:
    """Read one export.

    Args:
        path: uncompressed SQLite file, an `.arrows` file, or a folder of Arrow or Parquet files.
        source: what the user typed; notes and errors name it.
        progress: called with rows done and rows in all, the latter an estimate.

    Raises:
        SourceError: damaged, locked, or no export of Nsight Systems.
    """
    is_arrow = path.is_dir() or detect(path) == "arrow"
    with ArrowTables(path, source, ns.KNOWN) if is_arrow else Database(path, source, ns.KNOWN) as db:
        if not any(t in db for t in (ns.STRINGS, *ns.EVENT_TABLES)):
            kind = "Arrow or Parquet" if is_arrow else "a SQLite database"
            raise SourceError(source, f"is {kind}, but not an export of Nsight Systems")
        return _read(Reading(db, Strings(db)), _Steps(db, progress))


class _Steps:
    """Reports rows done, table by table."""

    def __init__(self, db: Tables, progress: Progress | None) -> None:
        self._sizes = {t: db.guess(t) for t in ns.EVENT_TABLES} if progress else {}
        self._progress = progress
        self._done = 0

    def finish(self, *tables: str) -> None:
        if self._progress:
            self._done += sum(self._sizes[t] for t in tables)
            self._progress(self._done, sum(self._sizes.values()))


def _read(reading: Reading, steps: _Steps) -> model.Trace:
    names = nsight_meta.thread_names(reading)
    calls = nsight_host.runtime(reading)
    steps.finish(ns.RUNTIME)
    ranges = nsight_nvtx.ranges(reading, names)
    steps.finish(ns.NVTX)
    others = [nsight_host.osrt(reading), *nsight_host.overhead(reading)]
    steps.finish(ns.OSRT, ns.PROFILER_OVERHEAD, ns.CUPTI_OVERHEAD)
    work = nsight_device.read(reading)
    steps.finish(ns.KERNEL, ns.MEMCPY, ns.MEMSET, ns.GRAPH_TRACE)
    reading.skipped.update({t: n for t in ns.SKIPPED_TABLES if (n := reading.db.count(t))})
    nsight_checks.check(reading, calls, ranges, work)
    return _trace(reading, nsight_host.assemble([calls, ranges, *others]), nsight_device.assemble(work), names)


def _trace(reading: Reading, host_rows: HostRows, device_rows: DeviceRows, names: dict[int, str]) -> model.Trace:
    (host, gtids), (device, devices) = host_rows, device_rows
    machine = nsight_meta.host_name(reading)
    epoch = nsight_meta.epoch(reading)
    seen = sorted({*pids(gtids).tolist(), *(pid for pid, _ in devices)})
    return model.Trace(
        host=host,
        device=device,
        processes=nsight_meta.processes(reading, seen, machine, names),
        threads=_threads(gtids, names, machine),
        devices=nsight_device.device_rows(reading, devices, machine),
        graph_nodes=nsight_graphs.nodes(reading, gtids),
        sources=_sources(reading, host.num_rows + device.num_rows, epoch),
        epoch_ns=epoch,
        epoch_error_ns=None if epoch is None else _EPOCH_ERROR_NS,
        notes=tuple(reading.notes),
        meta=nsight_meta.producer(reading),
    )


def _threads(gtids: np.ndarray, names: dict[int, str], machine: str) -> pa.Table:
    columns = {
        "host": [machine] * len(gtids),
        "pid": pids(gtids),
        "tid": tids(gtids),
        "name": [names.get(g) for g in gtids.tolist()],
    }
    return model.table("threads", columns, len(gtids))


def _sources(reading: Reading, rows: int, epoch: int | None) -> pa.Table:
    about = nsight_meta.producer(reading)
    row = {
        "path": reading.db.source,
        "format": "nsight",
        "producer": about.get("product", "NVIDIA Nsight Systems"),
        "version": about.get("version") or about.get("schema"),
        "rows_read": rows,
        "rows_dropped": reading.dropped.total(),
        "rows_skipped": json.dumps(dict(reading.skipped)),
        "epoch_ns": epoch,
    }
    return model.table("sources", {k: [v] for k, v in row.items()}, 1)
