"""Which calls a question is about, and what was cold on their behalf: what shapes and requests count alike.

A cold stretch that was spent on a kernel is charged to the call that had to wait for it: the next call of that kernel
on the same thread, its next work, else (a candidate that failed, a search without a launch) its next repetition of a
benchmark. What names no kernel, or is followed by no call, is charged to none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.ranges import by_thread, open_at, request_rows
from tprof.analyze.calls import find_calls
from tprof.analyze.rows import labelled
from tprof.analyze.shape_text import bucket_of, labels_by
from tprof.buckets import OTHER
from tprof.events import COLD_PHASES
from tprof.intervals import NONE, clip
from tprof.model import codes, ints

if TYPE_CHECKING:
    import pyarrow as pa

    from tprof.analyze.attribution import Attribution
    from tprof.analyze.calls import Calls
    from tprof.analyze.options import Options
    from tprof.model import Trace


class Census:
    """Calls of a trace that a question is about, and what was cold on their behalf.

    Attributes:
        calls: every call of the trace.
        charges: every cold stretch of the window.
        kept: calls that begin in the window and are asked about, shape (calls,) bool.
        charged: cold stretches that such a call (in the window or not) is charged with, shape (stretches,) bool.
        cold: calls, no repetitions of a benchmark, for which something was cold, shape (calls,) bool.
        request: row of `host` of the request that each call served, -1 for none, shape (calls,).
    """

    def __init__(self, attribution: Attribution, options: Options, *, served: bool = False) -> None:
        """Take the calls of the kernels asked for; of these, if `served`, only what requests launched."""
        self.trace, self.sets = attribution.trace, options.buckets
        self.window = options.window or attribution.extent
        self.calls = calls = find_calls(self.trace)
        self.charges = _charge(self.trace, calls, self.window)
        wanted = np.array([options.about(k.kernel) for k in calls.keys] or [False])
        self.about = wanted[calls.key] if len(calls) else np.zeros(0, bool)
        self.request = _request_of(self.trace, calls, request_rows(self.trace, options.ranges))
        if served:
            self.about &= self.request != NONE
        self.kept = self.about & (not options.window or _within(calls.start, *self.window))
        self.charged = self._is_about(self.charges.call)
        self.cold = calls.cold.copy()
        self.cold[self.charges.cold_calls] = True
        self.cold &= ~calls.tuning

    def _is_about(self, call: np.ndarray) -> np.ndarray:
        """Whether each call (-1: none) is asked about."""
        return np.append(self.about, False)[call]

    @cached_property
    def buckets(self) -> list[str | None]:
        """Bucket of each key, as `set.bucket`; None where no set covers its kernel."""
        return [bucket_of(key.kernel, key.shape, self.sets, OTHER) for key in self.calls.keys]

    @cached_property
    def labels(self) -> list[str]:
        """Short name of each key's shape among those of its kernel, shape (keys,)."""
        keys = self.calls.keys
        short = labels_by([(key.kernel, key.source) for key in keys], [key.shape for key in keys])
        return [key.shape if key.source == "grid" else label for key, label in zip(keys, short, strict=True)]

    @cached_property
    def uses(self) -> dict[str, np.ndarray]:
        """How often each key was compiled, found on disk, or a candidate timed for it, shape (keys,) each."""
        compiles, candidates = self.trace.compiles, self.trace.candidates
        hit = ints(compiles, "cache_hit") == 1
        return {
            "compiles": self._count(compiles, ~hit),
            "disk_hits": self._count(compiles, hit),
            "candidates": self._count(candidates, np.ones(candidates.num_rows, bool)),
        }

    def _count(self, table: pa.Table, which: np.ndarray) -> np.ndarray:
        """Rows of a table by the key of the call that each is charged to, those that end in the window."""
        end, call = ints(table, "end_ns"), _charged_call(table, self.calls)
        mine = which & self._is_about(call) & _within(end, self.window[0] + 1, self.window[1] + 1)
        return np.bincount(self.calls.key[call[mine]], minlength=len(self.calls.keys))


def _within(instant: np.ndarray, low: int, high: int) -> np.ndarray:
    return (instant >= low) & (instant < high)


def _request_of(trace: Trace, calls: Calls, rows: np.ndarray) -> np.ndarray:
    """Request of each call: as the recorder says, else the innermost of those open on its thread."""
    told = np.isin(calls.request, rows)
    return np.where(told, calls.request, open_at(trace.host, rows, calls.start, calls.thread))


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


def _charge(trace: Trace, calls: Calls, window: tuple[int, int]) -> Charges:
    """Charge every cold stretch of a trace; stretches are clipped to the window, those outside left out."""
    phase, phases = codes(trace.spans, "phase")
    index = np.array([COLD_PHASES.index(p) if p in COLD_PHASES else NONE for p in phases] or [NONE])[phase]
    call = _charged_call(trace.spans, calls)
    cold_calls = np.unique(call[(index != NONE) & (call != NONE)])
    start, end = clip(ints(trace.spans, "start_ns"), ints(trace.spans, "end_ns"), *window)
    rows = np.flatnonzero((index != NONE) & (end > start))
    recorded = labelled(trace.spans, "basis", {"recorded"}, rows)
    thread = ints(trace.spans, "thread")[rows]
    return Charges(rows, start[rows], end[rows], thread, index[rows], recorded, call[rows], cold_calls)


def _charged_call(table: pa.Table, calls: Calls) -> np.ndarray:
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
