"""When a device was not busy, and which of its events ended each wait."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from tprof.intervals import NONE

if TYPE_CHECKING:
    from tprof.analyze.busy import DeviceEvents

BUSY, IDLE, LEAD, TAIL = range(4)
EVER = np.iinfo(np.int64)


@dataclass(frozen=True)
class Gaps:
    """All time at which a device was not busy, cut where its lead and its tail begin and end; arrays of shape (gaps,).

    The first and the last gap lie outside everything that was recorded: a window may reach there.
    """

    start: np.ndarray
    end: np.ndarray
    where: np.ndarray  # IDLE, LEAD or TAIL
    event: np.ndarray  # that ends the gap, as an index into the device's events; -1: none

    def some(self, rows: slice) -> Gaps:
        """Some of the gaps."""
        return Gaps(*(getattr(self, field.name)[rows] for field in fields(self)))


def find_gaps(events: DeviceEvents, extent: tuple[int, int]) -> Gaps:
    """Gaps of a device that has events.

    Args:
        events: of the device.
        extent: begin and end of everything that was recorded, ns.
    """
    solid = np.flatnonzero(events.end > events.start)
    start, reach = events.start[solid], np.maximum.accumulate(events.end[solid])
    at = np.flatnonzero(start[1:] > reach[:-1])
    first, last = int(events.start[0]), int(events.end.max())
    inner = (start[0], reach[-1]) if len(solid) else (last, last)
    low = np.concatenate([[EVER.min, extent[0], first], reach[at], [inner[1], last, extent[1]]])
    high = np.concatenate([[extent[0], first, inner[0]], start[at + 1], [last, extent[1], EVER.max]])
    where = np.full(len(low), IDLE, np.int8)
    where[:2], where[-2:] = LEAD, TAIL
    event = np.concatenate([[NONE, 0, 0], solid[at + 1], [len(events) - 1, NONE, NONE]]).astype(np.int32)
    if len(solid) < len(events):  # an empty event may begin with a solid one
        event[2:-2] = np.minimum(np.searchsorted(events.start, high[2:-2]), len(events) - 1)
    wide = np.flatnonzero(high > low)
    return Gaps(low[wide], high[wide], where[wide], event[wide])
