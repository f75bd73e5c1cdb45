"""For which call something cold was done: the one that had to wait for it.

A cold stretch that was spent on a kernel is charged to the next call of that kernel on the same thread: its next work,
else (a candidate that failed, a search without a launch) its next repetition of a benchmark. What names no kernel, or
is followed by no call, is charged to none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.ranges import by_thread
from tprof.events import COLD_PHASES
from tprof.intervals import NONE, clip
from tprof.model import codes, ints

if TYPE_CHECKING:
    import pyarrow as pa

    from tprof.analyze.calls import Calls
    from tprof.model import Trace


@dataclass(frozen=True)
class Charges:
    """Cold stretches inside a window, each with the call that it is charged to (-1: none); shape (stretches,).

    `phase` indexes COLD_PHASES, `row` is the row of `spans`; `cold_calls` are all calls that something in the trace is
    charged to, inside the window or not.
    """

    row: np.ndarray
    start: np.ndarray
    end: np.ndarray
    thread: np.ndarray
    phase: np.ndarray
    recorded: np.ndarray
    call: np.ndarray
    cold_calls: np.ndarray


def charge(trace: Trace, calls: Calls, window: tuple[int, int]) -> Charges:
    """Charge every cold stretch of a trace; stretches are clipped to the window, those outside left out."""
    phase, phases = codes(trace.spans, "phase")
    index = np.array([COLD_PHASES.index(p) if p in COLD_PHASES else NONE for p in phases] or [NONE])[phase]
    call = charged_call(trace.spans, calls)
    cold_calls = np.unique(call[(index != NONE) & (call != NONE)])
    start, end = clip(ints(trace.spans, "start_ns"), ints(trace.spans, "end_ns"), *window)
    rows = np.flatnonzero((index != NONE) & (end > start))
    basis, bases = codes(trace.spans, "basis")
    recorded = np.array([*(b == "recorded" for b in bases), False])[basis[rows]]
    thread = ints(trace.spans, "thread")[rows]
    return Charges(rows, start[rows], end[rows], thread, index[rows], recorded, call[rows], cold_calls)


def charged_call(table: pa.Table, calls: Calls) -> np.ndarray:
    """Call that each row of `spans`, `compiles` or `candidates` is charged to, -1 for none; shape (rows,)."""
    kernel, kernels = codes(table, "kernel")
    known = {name: i for i, name in enumerate(kernels)}
    of_key = np.array([known.get(k.kernel, NONE) for k in calls.keys] or [NONE])
    of_call = of_key[calls.key] if len(calls) else calls.key
    end, thread = ints(table, "end_ns"), ints(table, "thread")
    out = np.full(table.num_rows, NONE)
    for on, rows in by_thread(thread):
        here = np.flatnonzero(calls.thread == on)
        for name in np.unique(kernel[rows][kernel[rows] != NONE]).tolist():
            mine, own = rows[kernel[rows] == name], here[of_call[here] == name]
            again = _next(calls, own[calls.tuning[own]], end[mine])
            work = _next(calls, own[~calls.tuning[own]], end[mine])
            out[mine] = np.where(work == NONE, again, work)
    return out


def _next(calls: Calls, own: np.ndarray, instant: np.ndarray) -> np.ndarray:
    """The first of some calls of one thread that ends at or after each instant, -1 for none."""
    at = np.searchsorted(calls.end[own], instant, side="left")
    return np.append(own, NONE)[at]
