"""Exclusive phases over time, of every thread and device: what the exports draw as tracks of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from tprof.align.ranges import looked_up
from tprof.analyze.attribution import BUSY, WHERE
from tprof.analyze.timeline import basis_of, phase_of
from tprof.events import BASES, PHASES, PURPOSES, Column
from tprof.intervals import NONE
from tprof.model import ints, labels, nullable, numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze.attribution import Attribution

_SPAN = (Column("start_ns", "int64", "begin, ns on the trace's clock", nullable=False),
         Column("end_ns", "int64", "end, ns on the trace's clock", nullable=False))  # fmt: skip
_SAID = (Column("phase", "label", "one of PHASES; of device work its purpose", nullable=False),
         Column("basis", "label", "recorded, inferred or unattributed; null: see `device.purpose_basis`"))  # fmt: skip
COLUMNS: Final[dict[str, tuple[Column, ...]]] = {
    "thread_phases": (*_SPAN, Column("thread", "int32", "row of `threads`", nullable=False), *_SAID),
    "device_phases": (
        *_SPAN,
        Column("device", "int32", "row of `devices`", nullable=False),
        Column("where", "label", "busy, idle, lead or tail; those of a device cover the window once", nullable=False),
        *_SAID,
        Column("row", "int64", "row of `device`: the event that ends the gap"),
    ),
}


def thread_phases(attribution: Attribution) -> pa.Table:
    """What each thread was doing between its first and its last event; columns as in `COLUMNS`."""
    low, high = attribution.extent
    parts = []
    for thread in np.unique(ints(attribution.trace.host, "thread")).tolist():
        start, end, value, _ = attribution.timelines.of(thread).over(np.array([low]), np.array([high]))
        known = value != NONE
        parts.append((start[known], end[known], np.full(int(known.sum()), thread), value[known]))
    start, end, thread, value = _joined(parts, 4)
    return pa.table({
        "start_ns": numbers(start), "end_ns": numbers(end), "thread": numbers(thread.astype(np.int32)),
        "phase": labels(phase_of(value), PHASES), "basis": labels(basis_of(value), BASES),
    })  # fmt: skip


def device_phases(attribution: Attribution) -> pa.Table:
    """The partition of the whole trace for each device; columns as in `COLUMNS`."""
    low, high = attribution.extent
    parts = []
    for device in attribution.events:
        pieces = attribution.pieces(device)
        start, end = np.clip(pieces.start, low, high), np.clip(pieces.end, low, high)
        keep = end > start
        row = looked_up(pieces.row, pieces.gap)
        columns = (start, end, np.full(len(start), device), pieces.where, pieces.value, row)
        parts.append(tuple(column[keep] for column in columns))
    start, end, on, where, value, row = _joined(parts, 6)
    busy = where == BUSY
    phase = np.where(busy, value, len(PURPOSES) + phase_of(value))
    return pa.table({
        "start_ns": numbers(start), "end_ns": numbers(end), "device": numbers(on.astype(np.int32)),
        "where": labels(where, WHERE), "phase": labels(phase, (*PURPOSES, *PHASES)),
        "basis": labels(np.where(busy, NONE, basis_of(value)), BASES), "row": nullable(row),
    })  # fmt: skip


def _joined(parts: Sequence[tuple[np.ndarray, ...]], columns: int) -> list[np.ndarray]:
    none = (np.zeros(0, np.int64),) * columns
    return [np.concatenate(column) for column in zip(none, *parts, strict=True)]
