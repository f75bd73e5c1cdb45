"""When each device was busy, and for what: unions over its streams, an instant counted once by order of purpose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tprof.align.calls import is_kind
from tprof.events import PURPOSES
from tprof.intervals import subtract, union
from tprof.model import Trace, codes, distinct, first_rows, ints, refine

Set = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class DeviceEvents:
    """Work of one device by (start, stream, row); arrays of shape (events,)."""

    device: int
    row: np.ndarray
    start: np.ndarray
    end: np.ndarray
    stream: np.ndarray  # number of the stream, unique over processes and contexts
    launch: np.ndarray
    purpose: np.ndarray  # index into PURPOSES

    def __len__(self) -> int:
        """Number of events."""
        return len(self.row)


def stream_numbers(trace: Trace) -> tuple[np.ndarray, list[tuple[int, int, int, int]]]:
    """Stream of each device event, and (pid, device, context, stream) of each number."""
    columns = [ints(trace.device, c) for c in ("pid", "device", "context", "stream")]
    number = np.zeros(trace.device.num_rows, np.int64)
    for column in columns:
        number = refine(number, column)
    first = first_rows(number)
    keys = [tuple(int(c[i]) for c in columns) for i in first]
    ranked = sorted(range(len(keys)), key=keys.__getitem__)  # ties in time go by stream, whatever the order of the file
    rank = np.zeros(len(keys), np.int64)
    rank[ranked] = np.arange(len(keys))
    return rank[number], [keys[i] for i in ranked]  # type: ignore[misc]


def event_purposes(trace: Trace) -> np.ndarray:
    """Index into PURPOSES of each device event, work where nothing else is known; shape (device rows,)."""
    code, names = codes(trace.device, "purpose")
    return np.array([*(PURPOSES.index(n) for n in names), 0])[code]


def device_events(trace: Trace) -> list[DeviceEvents]:
    """Events of every device that has any, in order of device."""
    device = trace.device
    number, _ = stream_numbers(trace)
    start, end, on, launch = (ints(device, c) for c in ("start_ns", "end_ns", "device", "launch"))
    purpose = event_purposes(trace)
    found = []
    for d in distinct(on).tolist():
        rows = np.flatnonzero(on == d)
        rows = rows[np.lexsort((number[rows], start[rows]))]
        found.append(DeviceEvents(d, rows, start[rows], end[rows], number[rows], launch[rows], purpose[rows]))
    return found


def busy_by_purpose(events: DeviceEvents) -> list[Set]:
    """Disjoint set of instants of each of PURPOSES; together they are the device's busy time."""
    taken: Set = (np.zeros(0, np.int64), np.zeros(0, np.int64))
    sets = []
    for i in range(len(PURPOSES)):
        mine = events.purpose == i
        own = union(events.start[mine], events.end[mine])
        if len(own[0]) and len(taken[0]):
            own = subtract(own, taken)
        sets.append(own)
        if len(own[0]):
            taken = union(np.concatenate([taken[0], own[0]]), np.concatenate([taken[1], own[1]]))
    return sets


def extent(trace: Trace) -> tuple[int, int]:
    """First and last instant of any host or device event, bookkeeping rows left out; (0, 0) for an empty trace."""
    real = ~is_kind(trace.host, "overhead", "mark")
    start = np.concatenate([ints(trace.host, "start_ns")[real], ints(trace.device, "start_ns")])
    end = np.concatenate([ints(trace.host, "end_ns")[real], ints(trace.device, "end_ns")])
    return (int(start.min()), int(end.max())) if len(start) else (0, 0)
