"""Launch to device event: the host call that enqueued each piece of device work, by correlation id within a process.

One graph launch owns many kernels. Runtime and driver rows of one call share an id: the outermost wins. Ids of two
processes never meet. A device event whose call was not recorded stays unlinked (null) and is kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from tprof.align.calls import ENQUEUES, NOT_A_CALL, call_classes
from tprof.events import Note
from tprof.intervals import NONE
from tprof.model import Trace, distinct, ints, put

_REASONS: Final = (
    "without a correlation id", "of a process without recorded calls", "launched before the first recorded call",
    "whose call was lost", "launched after the last recorded call",
)  # fmt: skip


def link_launches(trace: Trace) -> Trace:
    """Fill `device.launch` with rows of `host`."""
    launch = find_launches(trace)
    unlinked = int((launch == NONE).sum())
    notes = trace.notes
    if unlinked:
        message = (
            f"{unlinked} of {len(launch)} device events have no recorded launch ({_why(trace, launch == NONE)}); "
            "idle time before them is unattributed"
        )
        notes = (*notes, Note("unlinked", message, unlinked, _first_source(trace)))
    return replace(trace, device=put(trace.device, launch=launch), notes=notes)


def find_launches(trace: Trace) -> np.ndarray:
    """Row of `host` per device event, -1 where there is none; shape (device rows,)."""
    kind = call_classes(trace.host)
    correlation = ints(trace.host, "correlation")
    rows = np.flatnonzero((kind != NOT_A_CALL) & (correlation > 0))
    pid, start, end = (ints(trace.host, c)[rows] for c in ("pid", "start_ns", "end_ns"))
    pids = distinct(np.concatenate([pid, ints(trace.device, "pid")]))
    key = _key(pids, pid, correlation[rows])
    order = np.lexsort((-end, start, ~np.isin(kind[rows], ENQUEUES), key))
    key, rows = key[order], rows[order]
    wanted = _key(pids, ints(trace.device, "pid"), ints(trace.device, "correlation"))
    place = np.searchsorted(key, wanted, side="left")
    if not len(key):
        return np.full(len(wanted), NONE)
    found = (place < len(key)) & (key[np.minimum(place, len(key) - 1)] == wanted)
    found &= ints(trace.device, "correlation") > 0
    return np.where(found, rows[np.minimum(place, len(key) - 1)], NONE)


def first_events(trace: Trace) -> np.ndarray:
    """Row of the earliest device event that each host row enqueued, -1 for none; shape (host rows,)."""
    launch = ints(trace.device, "launch")
    order = np.argsort(-ints(trace.device, "start_ns"), kind="stable")
    order = order[launch[order] != NONE]
    out = np.full(trace.host.num_rows, NONE)
    out[launch[order]] = order  # later writes win, so the earliest event stays
    return out


def _why(trace: Trace, unlinked: np.ndarray) -> str:
    """How many of the unlinked device events (shape (device rows,) bool) for which reason; ids grow with time."""
    pid, wanted = (ints(trace.device, c)[unlinked] for c in ("pid", "correlation"))
    known = ints(trace.host, "correlation")
    calls = (call_classes(trace.host) != NOT_A_CALL) & (known > 0)
    counts = np.zeros(len(_REASONS), np.int64)
    for process in distinct(pid).tolist():
        ids, own = wanted[pid == process], known[calls & (ints(trace.host, "pid") == process)]
        order = 2 + (ids >= own.min()) + (ids > own.max()) if len(own) else np.ones(len(ids), np.int64)
        counts += np.bincount(np.where(ids > 0, order, 0), minlength=len(_REASONS))
    return ", ".join(f"{n} {why}" for why, n in zip(_REASONS, counts.tolist(), strict=True) if n)


def _key(pids: np.ndarray, pid: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    """Process and correlation id in one integer; ids are at most 48 bits long."""
    return (np.searchsorted(pids, pid) << 48) | (correlation & 0xFFFF_FFFF_FFFF)


def _first_source(trace: Trace) -> str:
    return trace.sources["path"][0].as_py() if trace.sources.num_rows else ""
