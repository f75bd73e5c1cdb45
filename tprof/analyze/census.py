"""Which calls a question is about, and what was cold on their behalf: what shapes and requests count alike."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.ranges import by_thread, request_rows
from tprof.analyze.calls import find_calls
from tprof.analyze.charges import charge, charged_call
from tprof.analyze.shape_text import bucket_of, labels
from tprof.buckets import OTHER
from tprof.intervals import NONE, innermost
from tprof.model import ints

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
        self.charges = charge(self.trace, calls, self.window)
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
        out = [key.shape for key in self.calls.keys]
        of_kernel: dict[tuple[str, str], list[int]] = {}
        for i, key in enumerate(self.calls.keys):
            of_kernel.setdefault((key.kernel, key.source), []).append(i)
        for (_, source), numbers in of_kernel.items():
            if source != "grid":
                for i, label in zip(numbers, labels([out[i] for i in numbers]), strict=True):
                    out[i] = label
        return out

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
        end, call = ints(table, "end_ns"), charged_call(table, self.calls)
        mine = which & self._is_about(call) & _within(end, self.window[0] + 1, self.window[1] + 1)
        return np.bincount(self.calls.key[call[mine]], minlength=len(self.calls.keys))


def _within(instant: np.ndarray, low: int, high: int) -> np.ndarray:
    return (instant >= low) & (instant < high)


def _request_of(trace: Trace, calls: Calls, rows: np.ndarray) -> np.ndarray:
    """Request of each call: as the recorder says, else the innermost of those open on its thread."""
    out = np.where(np.isin(calls.request, rows), calls.request, NONE)
    start, end, thread = (ints(trace.host, c)[rows] for c in ("start_ns", "end_ns", "thread"))
    for on, at in by_thread(thread):
        mine = np.flatnonzero((calls.thread == on) & (out == NONE))
        around = innermost(start[at], end[at]).at(calls.start[mine])
        out[mine] = np.where(around == NONE, NONE, rows[at][around])
    return out
