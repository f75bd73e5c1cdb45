"""Several recordings as one trace on one clock: the first one's, the others shifted by their UTC epochs.

Every row keeps its identity: threads and ordinals of two recordings are never merged, devices only where a UUID says
that they are the same.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tprof.errors import UsageError
from tprof.events import TABLES, Note
from tprof.intervals import NONE
from tprof.model import Trace, ints, put, table

if TYPE_CHECKING:
    from collections.abc import Sequence

# Columns that point to rows of another table, by table.
_POINTERS = {
    "host": {"thread": "threads", "parent": "host", "request": "host"},
    "device": {"device": "devices", "launch": "host", "capture": "host"},
    "spans": {"thread": "threads"},
    "candidates": {"thread": "threads"},
    "compiles": {"thread": "threads", "specialization": "specializations", "candidate": "candidates"},
    "specializations": {"process": "processes"},
    "graph_events": {"thread": "threads", "span": "host"},
    "graph_nodes": {"thread": "threads"},
    "startup": {"thread": "threads", "process": "processes"},
    "threads": {"process": "processes", "source": "sources"},
    "devices": {"source": "sources"},
}


def pointers(table_name: str) -> dict[str, str]:
    """Of a table: the first of its columns that points to each other table, by that table's name."""
    return {target: column for column, target in reversed(_POINTERS.get(table_name, {}).items())}


def combine(traces: Sequence[Trace]) -> Trace:
    """One trace of all rows.

    Raises:
        UsageError: there is nothing to combine.
    """
    if not traces:
        raise UsageError("no trace was given; name a file or a directory of traces")
    if len(traces) == 1:
        return traces[0]
    names = _told_apart([t.sources["path"][0].as_py() for t in traces])
    # Where a machine is not known it is named after the source, so that equal process ids stay apart.
    named = [_with_source(on_host(t, name, known=False)) for t, name in zip(traces, names, strict=True)]
    epoch = next((t.epoch_ns for t in named if t.epoch_ns is not None), None)
    shifted = [shift(t, 0 if t.epoch_ns is None or epoch is None else t.epoch_ns - epoch) for t in named]
    parts = _renumbered(shifted)
    tables = {name: pa.concat_tables([p[name] for p in parts]).unify_dictionaries() for name in TABLES}
    notes = tuple(n for t in traces for n in t.notes) + _clock_notes(traces)
    joined = Trace(**tables, epoch_ns=epoch, notes=notes, meta={"sources": [dict(t.meta) for t in traces]})
    return _merge_devices(joined)


def _told_apart(paths: Sequence[str]) -> list[str]:
    """The end of each path: as many of its parts as tell all of them apart."""
    parts = [PurePath(path).parts for path in paths]
    tails = ([str(PurePath(*p[-n:])) for p in parts] for n in range(1, max(map(len, parts)) + 1))
    return next((found for found in tails if len(set(found)) == len(set(paths))), list(paths))


def on_host(trace: Trace, host: str, *, known: bool = True) -> Trace:
    """A trace with its processes, threads and devices on one machine; or, not `known`, those of which it is unknown."""
    tables = {name: getattr(trace, name) for name in ("processes", "threads", "devices")}
    for name, data in tables.items():
        tables[name] = put(
            data, host=pa.array([(not known and h) or host for h in data["host"].to_pylist()], pa.string())
        )
    return replace(trace, **tables)


def _with_source(trace: Trace) -> Trace:
    """Say of each thread which source it is from, where there is one and nobody has yet."""
    threads = trace.threads
    if trace.sources.num_rows != 1 or threads["source"].null_count < threads.num_rows:
        return trace
    return replace(trace, threads=put(threads, source=np.zeros(threads.num_rows, np.int32)))


def shift(trace: Trace, offset: int) -> Trace:
    """The same trace with every time moved by `offset` ns."""
    if not offset:
        return trace
    tables = {}
    for name, columns in TABLES.items():
        data: pa.Table = getattr(trace, name)
        for column in {"start_ns", "end_ns"} & {c.name for c in columns}:
            data = put(data, **{column: pc.add(data[column], pa.scalar(offset, pa.int64()))})
        tables[name] = data
    return replace(trace, **tables)


def _renumbered(traces: Sequence[Trace]) -> list[dict[str, pa.Table]]:
    """Tables of each trace with its row pointers moved behind the rows of those before it."""
    rows = dict.fromkeys(TABLES, 0)
    parts = []
    for trace in traces:
        tables = {name: getattr(trace, name) for name in TABLES}
        for name, pointers in _POINTERS.items():
            for column, target in pointers.items():
                tables[name] = _offset(tables[name], column, rows[target])
        parts.append(tables)
        for name in TABLES:
            rows[name] += getattr(trace, name).num_rows
    return parts


def _offset(data: pa.Table, column: str, by: int) -> pa.Table:
    values = ints(data, column)
    return put(data, **{column: np.where(values == NONE, NONE, values + by)})


def _clock_notes(traces: Sequence[Trace]) -> tuple[Note, ...]:
    lost = [t.sources["path"][0].as_py() for t in traces if t.epoch_ns is None]
    message = "the source does not say when its clock began; its times are not aligned with the other sources'"
    return tuple(Note("no-epoch", message, 1, path) for path in lost)


def _merge_devices(trace: Trace) -> Trace:
    """Make rows with one UUID on one host one device."""
    devices = trace.devices.to_pylist()
    first: dict[tuple[str, str], int] = {}
    target = [first.setdefault((d["host"], d["uuid"]), i) if d["uuid"] else i for i, d in enumerate(devices)]
    if target == list(range(len(devices))):
        return trace
    kept = sorted(set(target))
    place = np.array([kept.index(t) for t in target], np.int32)
    device = put(trace.device, device=place[ints(trace.device, "device")])
    return replace(
        trace, device=device, devices=table("devices", {c: [devices[i][c] for i in kept] for c in devices[0]})
    )
