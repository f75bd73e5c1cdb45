"""Host events of an Nsight export: CUDA API and operating-system calls, the profiler's overhead; joins the ranges."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tprof import model
from tprof.read import nsight_schema as ns
from tprof.read.columns import Pick
from tprof.read.nsight_rows import Reading, distinct, numbers, pids, tids
from tprof.read.nsight_strings import Labels, concat, constant, flat
from tprof.read.nsight_sync import waits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_VERSION = re.compile(r"_v\d+$")
_UNKNOWN = "[string {}]"


@dataclass(frozen=True)
class HostRows:
    """Host events of one kind of table, before they become the trace's table; all of shape (rows,).

    Attributes:
        start, end: ns.
        gtid: globalTid.
        kind, name, domain: labels.
        correlation: int64 Arrow array, null where there is none.
        attrs: JSON text, null where there is nothing to say.
    """

    start: np.ndarray
    end: np.ndarray
    gtid: np.ndarray
    kind: Labels
    name: Labels
    correlation: pa.Array | pa.ChunkedArray | None = None
    domain: Labels | None = None
    attrs: pa.Array | pa.ChunkedArray | None = None

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.start)


def runtime(reading: Reading) -> HostRows:
    """Calls of the CUDA runtime and driver API."""
    data = reading.rows(ns.RUNTIME, ("start", "end", "globalTid"), ("nameId", "eventClass", "correlationId"))
    raw = reading.strings.lookup(data["nameId"], _UNKNOWN).fallback(constant("[unknown call]", len(data)))
    kind = raw.map(_api).fallback(_event_class(data))
    name = raw.map(lambda v: _VERSION.sub("", v))
    rows = _rows(data, kind.fallback(constant("runtime", len(data))), name, correlation=data["correlationId"])
    return replace(rows, attrs=waits(reading, data))


def osrt(reading: Reading) -> HostRows:
    """Operating-system calls that tell of subprocesses and long waits; every other row only counts as skipped."""
    ids = reading.strings.ids
    where = [Pick("nameId", ids(ns.OSRT_NAMES)), Pick("nameId", ids((ns.OSRT_WAITING_READ,)), ns.OSRT_READ_NS)]
    usable = {"start", "end", "nameId"} <= set(reading.db.columns(ns.OSRT))
    dropped = reading.dropped.total()
    data = reading.rows(ns.OSRT, ("start", "end", "globalTid", "nameId"), where=where if usable else ())
    if others := reading.db.count(ns.OSRT) - len(data) - (reading.dropped.total() - dropped):
        reading.skipped[ns.OSRT] += others
    return _rows(data, constant("osrt", len(data)), reading.strings.lookup(data["nameId"], _UNKNOWN))


def overhead(reading: Reading) -> list[HostRows]:
    """What the profiler says of itself, and from 2025.5 on of module loading and full command buffers."""
    required, optional = ("start", "end", "globalTid"), ("nameId", "overheadType", "correlationId")
    parts = []
    for table in (ns.PROFILER_OVERHEAD, ns.CUPTI_OVERHEAD):
        known = tuple(c for c in optional if c in ns.KNOWN[table])
        data = reading.rows(table, required, known)
        name = reading.strings.lookup(data["nameId"], _UNKNOWN).fallback(_overhead_type(data))
        correlation = data["correlationId"] if "correlationId" in known else None
        parts.append(_rows(data, constant("overhead", len(data)), name, correlation=correlation))
    return parts


def assemble(parts: Sequence[HostRows]) -> tuple[pa.Table, np.ndarray]:
    """The table `host` by start, the longer first; and the distinct globalTids that its column `thread` points to."""
    start, end = (np.concatenate([getattr(p, n) for p in parts]) for n in ("start", "end"))
    order = np.lexsort((-end, start))
    gtid = np.concatenate([p.gtid for p in parts])[order]
    group, keys = distinct(gtid)
    found = np.array([key for (key,) in keys], np.int64)
    threads = np.sort(found)
    thread = np.searchsorted(threads, found)[group]
    columns = {
        "start_ns": start[order],
        "end_ns": end[order],
        "thread": thread.astype(np.int32),
        "pid": pids(gtid),
        "tid": tids(gtid),
        "kind": concat([p.kind for p in parts]).take(order).array(),
        "name": concat([p.name for p in parts]).take(order).array(),
        "domain": concat([p.domain or _none(len(p)) for p in parts]).take(order).array(),
        "correlation": _stack([p.correlation for p in parts], parts, pa.int64()).take(pa.array(order)),
        "attrs": _stack([p.attrs for p in parts], parts, pa.string()).take(pa.array(order)),
    }
    return model.table("host", columns, len(order)), threads


def _rows(
    data: pa.Table, kind: Labels, name: Labels, correlation: pa.Array | pa.ChunkedArray | None = None
) -> HostRows:
    return HostRows(numbers(data, "start"), numbers(data, "end"), numbers(data, "globalTid"), kind, name, correlation)


def _api(name: str) -> str | None:
    return "runtime" if name.startswith(("cuda", "hip")) else "driver" if name.startswith("cu") else None


def _event_class(data: pa.Table) -> Labels:
    return _by_number(data, "eventClass", ns.RUNTIME_CLASSES)


def _overhead_type(data: pa.Table) -> Labels:
    known = _by_number(data, "overheadType", dict(enumerate(ns.OVERHEAD_TYPES)))
    return known.fallback(constant("[unknown overhead]", len(data)))


def _by_number(data: pa.Table, column: str, words: Mapping[int, str]) -> Labels:
    """Labels of a column of small numbers that the export does not spell out."""
    number = numbers(data, column, model.NULL)
    codes = np.full(max(words) + 2, model.NULL, np.int32)
    codes[list(words)] = np.arange(len(words))
    return Labels(codes[np.where((number < 0) | (number > max(words)), -1, number)], list(words.values()))


def _none(rows: int) -> Labels:
    return Labels(np.full(rows, model.NULL, np.int32), [])


def _stack(
    columns: Sequence[pa.Array | pa.ChunkedArray | None], parts: Sequence[HostRows], kind: pa.DataType
) -> pa.Array:
    pairs = zip(columns, parts, strict=True)
    return pa.concat_arrays([pa.nulls(len(p), kind) if c is None else flat(c) for c, p in pairs])
