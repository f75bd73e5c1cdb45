"""A part of a trace: what reaches into a window, for other programs to look at."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tprof.intervals import NONE, touches
from tprof.model import ints, numbers, put

if TYPE_CHECKING:
    import pyarrow as pa

    from tprof.model import Trace


def cut(trace: Trace, window: tuple[int, int]) -> Trace:
    """Host and device rows that reach into a window, and the calls that launched such device rows, or were captured.

    Whatever else points to a row of `host` or stands for a row of it is left out.
    """
    host, device = trace.host, within(trace.device, window)
    keep = touches(ints(host, "start_ns"), ints(host, "end_ns"), *window)
    for column in ("launch", "capture"):
        called = ints(device, column)
        keep[called[called != NONE]] = True
    number = np.append(np.where(keep, np.cumsum(keep) - 1, NONE), NONE)
    host = host.filter(numbers(keep))
    for column in ("parent", "request"):
        host = _renumbered(host, column, number)
    device = _renumbered(_renumbered(device, "launch", number), "capture", number)
    none = {name: getattr(trace, name).slice(0, 0) for name in ("spans", "candidates", "compiles", "graph_events")}
    return replace(trace, host=host, device=device, **none)


def within(data: pa.Table, window: tuple[int, int]) -> pa.Table:
    """Rows of any table with `start_ns` and `end_ns` that reach into a window."""
    return data.filter(numbers(touches(ints(data, "start_ns"), ints(data, "end_ns"), *window)))


def _renumbered(data: pa.Table, column: str, number: np.ndarray) -> pa.Table:
    return put(data, **{column: number[ints(data, column)]})
