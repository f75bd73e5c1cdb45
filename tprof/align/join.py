"""Recordings of one run as one trace: tprof's own processes, and what other profilers saw of them, on one clock.

The recorder emits beacons into whatever listens: ranges whose name carries the monotonic and the wall-clock time at
which it read the clocks. A range begins after that reading, so the smallest difference bounds the offset tightest.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from tprof.align.combine import combine, on_host, pointers, shift
from tprof.align.markers import ShapeIds, is_ours, label_calls
from tprof.events import TABLES, Note
from tprof.intervals import NONE
from tprof.model import Trace, codes, ints, put

if TYPE_CHECKING:
    from collections.abc import Sequence

BEACON: Final = "tprof::clock:"


def join(traces: Sequence[Trace]) -> Trace:
    """One trace of a run directory.

    Args:
        traces: as `read.read_source` gives them: at least one of tprof's recorder, then others' of the same run.

    Returns:
        The trace on the recorder's monotonic clock. Of each other source, `sources` tells the clock offset that was
        taken from the beacons and its error. Rows that only repeat what the recorder knows are left out.
    """
    own = [t for t in traces if t.sources["format"][0].as_py() == "tprof"]
    others = [t for t in traces if t.sources["format"][0].as_py() != "tprof"]
    host = own[0].threads["host"][0].as_py() if own[0].threads.num_rows else ""
    known = _shape_ids(own)
    placed = [_labelled(_on_clock(t, own[0]), known) for t in others]
    joined = _merged(combine([*own, *(on_host(t, host) for t in placed)]), "threads", ("host", "pid", "tid"))
    return _merged(joined, "processes", ("host", "pid"))


def beacon_offset(trace: Trace) -> tuple[int, int, int] | None:
    """(offset, error, beacons) of a trace's clock against the recorder's monotonic one, ns; None without beacons.

    The error is how far the median beacon lies from the tightest: what reading and emitting usually take.
    """
    late = beacon_lateness(trace)
    return (int(late.min()), int(np.median(late) - late.min()), len(late)) if len(late) else None


def beacon_lateness(trace: Trace) -> np.ndarray:
    """By how much each beacon's begin on the trace's clock exceeds the monotonic time in its name, ns, in row order."""
    code, names = codes(trace.host, "name")
    read = {i: int(n[len(BEACON) :].split(":")[0]) for i, n in enumerate(names) if n.startswith(BEACON)}
    rows = np.flatnonzero(np.isin(code, list(read)))
    return ints(trace.host, "start_ns")[rows] - np.array([read[c] for c in code[rows].tolist()], np.int64)


def _on_clock(trace: Trace, reference: Trace) -> Trace:
    """A trace moved onto the recorder's clock by its beacons, else left to its epoch, which a note says."""
    found = beacon_offset(trace)
    if found is None:
        message = "holds none of the recorder's beacons; it was aligned by wall-clock time only"
        return replace(trace, notes=(*trace.notes, Note("no-beacons", message, 1, trace.sources["path"][0].as_py())))
    offset, error, _ = found
    sources = put(trace.sources, clock_offset_ns=pa.array([offset]), clock_error_ns=pa.array([error]))
    return replace(shift(trace, -offset), sources=sources, epoch_ns=reference.epoch_ns)


def _labelled(trace: Trace, known: ShapeIds) -> Trace:
    """The trace with its launches labelled by the markers around them, and without what the recorder emitted."""
    trace = label_calls(trace, known)
    return replace(trace, host=trace.host.filter(pa.array(~is_ours(trace.host))))


def _shape_ids(own: Sequence[Trace]) -> ShapeIds:
    """Shape keys by (pid, id), of pids with one recording only: a second one numbers anew."""
    recordings = Counter(t.threads["pid"][0].as_py() for t in own if t.threads.num_rows)
    rows = [row for t in own for row in t.shape_keys.to_pylist() if recordings[row["pid"]] == 1]
    return {(row["pid"], row["id"]): (row["kernel"], row["key"]) for row in rows}


def _merged(trace: Trace, name: str, keys: tuple[str, ...]) -> Trace:
    """Make rows of a table that name the same thing one row, and have the other tables point to it."""
    data: pa.Table = getattr(trace, name)
    first: dict[tuple[object, ...], int] = {}
    named = zip(*(data[c].to_pylist() for c in keys), strict=True)
    target = np.array([first.setdefault(key, i) for i, key in enumerate(named)], np.int64)
    kept = np.unique(target)
    place = np.append(np.searchsorted(kept, target), NONE)  # a null, which `ints` shows as -1, stays one
    tables = {name: data.take(pa.array(kept))}
    for pointing in TABLES:
        if (column := pointers(pointing).get(name)) is not None:
            rows: pa.Table = getattr(trace, pointing)
            tables[pointing] = put(rows, **{column: place[ints(rows, column)]})
    return replace(trace, **tables)
