"""The clocks of a recording: a monotonic one for every event, and its distance from the wall clock."""

from __future__ import annotations

import time
from itertools import count
from typing import NamedTuple

# CLOCK_MONOTONIC on Linux: one clock for every process of a machine, unmoved by the setting of the time of day.
now = time.perf_counter_ns
new_id = count(1).__next__  # ids of spans, atomic under every Python; a forked child goes on counting


class ClockPair(NamedTuple):
    """One instant on both clocks: monotonic ns, UTC ns, and how far apart the two readings can be, ns."""

    t_ns: int
    wall_ns: int
    error_ns: int


def pair() -> ClockPair:
    """Read both clocks at (nearly) one instant: the tightest of five sandwiches."""
    return min((_sandwich() for _ in range(5)), key=lambda p: p.error_ns)


def _sandwich() -> ClockPair:
    before, wall, after = now(), time.time_ns(), now()
    return ClockPair((before + after) // 2, wall, (after - before + 1) // 2)
