"""When each device was busy, and for what: unions over its streams, an instant counted once by order of purpose."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.calls import BOOKKEEPING, is_kind
from tprof.errors import TprofError
from tprof.events import PURPOSES
from tprof.intervals import subtract, union
from tprof.model import TIME_LIMIT, Trace, codes, distinct, first_rows, ints, refine

if TYPE_CHECKING:
    from collections.abc import Sequence

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

    @cached_property
    def stream_idle_since(self) -> np.ndarray:
        """End of the event before each on its own stream, the least integer for the first; shape (events,), ns."""
        order = np.argsort(self.stream.astype(np.int32), kind="stable")
        same = self.stream[order[1:]] == self.stream[order[:-1]]
        out = np.full(len(self), np.iinfo(np.int64).min)
        out[order[1:][same]] = self.end[order[:-1][same]]
        return out

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
        if (start[rows[1:]] <= start[rows[:-1]]).any():
            rows = rows[np.lexsort((number[rows], start[rows]))]
        found.append(DeviceEvents(d, rows, start[rows], end[rows], number[rows], launch[rows], purpose[rows]))
    return found


def busy_by_purpose(events: DeviceEvents) -> list[Set]:
    """Disjoint set of instants of each of PURPOSES; together they are the device's busy time."""
    sets: list[Set] = []
    for i in range(len(PURPOSES)):
        mine = events.purpose == i
        own = union(events.start[mine], events.end[mine])
        sets.append(subtract(own, joined(sets)) if len(own[0]) else own)
    return sets


def joined(sets: Sequence[Set]) -> Set:
    """Union of disjoint sets."""
    solid = [s for s in sets if len(s[0])]
    if len(solid) == 1:
        return solid[0]
    none = np.zeros(0, np.int64)
    return union(np.concatenate([none, *(s[0] for s in solid)]), np.concatenate([none, *(s[1] for s in solid)]))


def extent(trace: Trace) -> tuple[int, int]:
    """First and last instant of any host or device event, bookkeeping rows left out; (0, 0) for an empty trace."""
    real = ~is_kind(trace.host, *BOOKKEEPING)
    if not real.any() and not trace.device.num_rows:
        return 0, 0
    ever = np.iinfo(np.int64)
    start = ints(trace.host, "start_ns").min(where=real, initial=ever.max)
    end = ints(trace.host, "end_ns").max(where=real, initial=ever.min)
    device = (ints(trace.device, c) for c in ("start_ns", "end_ns"))
    low, high = int(min(start, next(device).min(initial=start))), int(max(end, next(device).max(initial=end)))
    _check_sums(trace, high - low)
    return low, high


def _check_sums(trace: Trace, window_ns: int) -> None:
    """Refuse what int64 sums would answer wrongly."""
    for data in (trace.host, trace.device):
        if window_ns * data.num_rows >= TIME_LIMIT:  # else no sum of lengths can be so large
            lasting = ints(data, "end_ns").astype(np.float64) - ints(data, "start_ns")
            if lasting.sum() >= TIME_LIMIT:
                said = ", ".join(trace.sources["path"].to_pylist())
                raise TprofError(f"{said}: its events last over 146 years together; its times are damaged: record anew")
