"""Recorded launches to device API calls: shape key, kernel and request of each launch, onto the call that it made.

Clocks of two files agree to some tens of microseconds, launches take less, so nothing is matched by time: the k-th
recorded launch of a kernel on a thread is the k-th call there that put this kernel on a device.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.calls import GRAPH, call_classes, holds, is_kind
from tprof.align.links import first_events
from tprof.align.ranges import by_thread, open_at
from tprof.events import Note
from tprof.intervals import NONE
from tprof.model import Trace, codes, ints, labels, put

if TYPE_CHECKING:
    import pyarrow as pa


def add_shapes(trace: Trace) -> Trace:
    """Fill `shape_key`, `kernel` and `request` of the calls that recorded launches made.

    Where the two files hold different numbers of launches of a kernel on a thread (a profiler that was started later),
    they are left apart, which a note counts; what launch markers said stays.
    """
    host = trace.host
    launches = np.flatnonzero(is_kind(host, "launch"))
    if not len(launches) or not trace.device.num_rows:
        return trace
    call, apart = _matched(trace, launches)
    told = call != NONE
    for column in ("shape_key", "kernel"):
        code, values = codes(host, column)
        host = put(host, **{column: labels(np.where(told, code[call], code), values)})
    request = ints(host, "request")
    host = put(host, request=np.where(told, request[call], request))
    notes = trace.notes
    if apart:
        message = "recorded launches have no counterpart among the profiler's, which began later or lost some"
        notes = (*notes, Note("launches-apart", message, apart))
    return replace(trace, host=host, notes=notes)


def _matched(trace: Trace, launches: np.ndarray) -> tuple[np.ndarray, int]:
    """Recorded launch of each host row that is its call (-1: none), and how many launches found none."""
    host = trace.host
    start, end, thread = (ints(host, c) for c in ("start_ns", "end_ns", "thread"))
    # one that failed on the way, or that a graph captured, put nothing on a device
    launches = launches[(end[launches] > start[launches]) & ~_captured(host, launches)]
    kernel = _first_kernel(trace)
    code, names = codes(host, "kernel")
    calls = np.flatnonzero((kernel != "") & (call_classes(host) != GRAPH))
    named = np.array([*names, ""], object)
    out, apart = np.full(host.num_rows, NONE), 0
    for on, at in by_thread(thread[launches]):
        rows, here = launches[at], calls[thread[calls] == on]
        for name in dict.fromkeys(named[code[rows]]):
            mine, theirs = rows[named[code[rows]] == name], here[kernel[here] == name]
            if len(mine) != len(theirs):
                apart += len(mine)
                continue
            out[theirs[np.argsort(start[theirs], kind="stable")]] = mine[np.argsort(start[mine], kind="stable")]
    return out, apart


def _captured(host: pa.Table, rows: np.ndarray) -> np.ndarray:
    """Whether each of the rows began within a recorded graph capture on its thread, shape (rows,) bool."""
    captures = np.flatnonzero(is_kind(host, "cold") & holds(host, "phase", "graph_capture".__eq__))
    return open_at(host, captures, ints(host, "start_ns")[rows], ints(host, "thread")[rows]) != NONE


def _first_kernel(trace: Trace) -> np.ndarray:
    """Name of the first device event of each host row, shape (host rows,) of str, empty for none."""
    code, names = codes(trace.device, "name")
    first = first_events(trace)
    return np.array([*names, ""], object)[np.where(first == NONE, len(names), np.append(code, 0)[first])]
