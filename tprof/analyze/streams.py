"""Per stream: events, busy, idle, overlaps, and HTA's own split of its idle time, for comparison.

HTA (HolisticTraceAnalysis 0.5): the gap before a kernel is `host_wait` if its launch began after the previous kernel
ended, else `kernel_wait` if it is shorter than 30 us, else `other`. tprof adds `unlinked`: no launch was recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tprof.intervals import NONE, clip, covered, touches

if TYPE_CHECKING:
    from tprof.analyze.busy import DeviceEvents
    from tprof.analyze.result import Row

_KERNEL_WAIT_NS = 30_000


@dataclass(frozen=True)
class StreamFigures:
    """What is said of one stream inside a window; every figure in ns but the counts."""

    events: int
    busy_ns: int
    idle_ns: int
    overlaps: int
    hta_wait: dict[str, int]

    def row(self) -> Row:
        """As the JSON shows it."""
        return {
            "events": self.events,
            "busy_ns": self.busy_ns,
            "idle_ns": self.idle_ns,
            "overlaps": self.overlaps,
            "hta_wait": self.hta_wait,
        }


def stream_figures(events: DeviceEvents, launch_start: np.ndarray, window: tuple[int, int]) -> dict[int, StreamFigures]:
    """Figures of every stream of a device, by stream number.

    Args:
        events: the device's events by start.
        launch_start: begin of each event's launch call, anything where it has none; shape (events,).
        window: (start, end) in ns.
    """
    return {
        int(n): _figures(events, launch_start, np.flatnonzero(events.stream == n), window)
        for n in np.unique(events.stream)
    }


def _figures(events: DeviceEvents, launch_start: np.ndarray, at: np.ndarray, window: tuple[int, int]) -> StreamFigures:
    start, end, launched = events.start[at], events.end[at], launch_start[at]
    reach = np.maximum.accumulate(end)[:-1]
    gap = start[1:] > reach
    low, high = clip(reach[gap], start[1:][gap], *window)
    length, before, called = high - low, reach[gap], launched[1:][gap]
    full = start[1:][gap] - before
    unlinked = events.launch[at][1:][gap] == NONE
    host = ~unlinked & (called > before)
    kernel = ~unlinked & ~host & (full < _KERNEL_WAIT_NS)
    rest = ~(unlinked | host | kernel)
    named = {"host_wait_ns": host, "kernel_wait_ns": kernel, "other_ns": rest, "unlinked_ns": unlinked}
    inside = touches(start, end, *window)
    return StreamFigures(
        events=int(inside.sum()),
        busy_ns=covered(*clip(start, end, *window)),
        idle_ns=int(length.sum()),
        overlaps=int((start[1:] < reach)[inside[1:]].sum()),
        hta_wait={name: int(length[which].sum()) for name, which in named.items()},
    )
