"""What each thread was doing at every instant: the first half of DESIGN's rules of attribution.

A cold span wins over anything warm; else the innermost event that has a phase of its own; else, while another thread of
the same process is cold, that thread's phase (inferred); else `host` between the thread's first and last event.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from tprof.align.calls import ALLOC, COPY, GRAPH, LAUNCH, NOT_A_CALL, OTHER, SYNC, call_classes
from tprof.align.ranges import by_thread, process_of
from tprof.events import BASES, COLD_PHASES, PHASES, Basis, Phase
from tprof.intervals import NONE, NOTHING, Steps, innermost, last_to_end
from tprof.model import Trace, codes, ints

_CALL_PHASE: Final[dict[int, Phase]] = {
    LAUNCH: "launch",
    GRAPH: "launch",
    COPY: "memory",
    ALLOC: "memory",
    SYNC: "sync",
}
_COLLECTIVE_OPS: Final = ("nccl:", "c10d::", "record_param_comms", "gloo:")


def pack(phase: Phase, basis: Basis = "recorded") -> int:
    """Phase and basis as one value of a Steps."""
    return PHASES.index(phase) * len(BASES) + BASES.index(basis)


def phase_of(value: np.ndarray) -> np.ndarray:
    """Index into PHASES of packed values."""
    return value // len(BASES)


def basis_of(value: np.ndarray) -> np.ndarray:
    """Index into BASES of packed values."""
    return value % len(BASES)


HOST, UNATTRIBUTED = pack("host"), pack("unattributed", "unattributed")
_FIRST_WARM: Final = len(COLD_PHASES) * len(BASES)
_NO_ROWS: Final = np.zeros(0, np.int64)


class Timelines:
    """Exclusive phases of the threads of a trace, computed per thread when asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.start, self.end, self.thread = (ints(trace.host, c) for c in ("start_ns", "end_ns", "thread"))
        self._known: dict[int, Steps] = {}
        self._cold: dict[int, Steps] = {}

    def of(self, thread: int) -> Steps:
        """Packed phase of a thread over time; UNATTRIBUTED outside its first and last event."""
        if thread not in self._known:
            own = self.cold(thread).or_else(self._warm(thread))
            self._known[thread] = own.or_else(self._elsewhere(thread)).or_else(self._alive(thread))
        return self._known[thread]

    def cold(self, thread: int) -> Steps:
        """Packed cold phase of a thread over time, -1 where nothing is cold."""
        if thread not in self._cold:
            start, end, on, value = self._spans
            rows = np.flatnonzero((on == thread) & (value < _FIRST_WARM))
            self._cold[thread] = innermost(start, end, rows, value)
        return self._cold[thread]

    @cached_property
    def calls(self) -> np.ndarray:
        """Class of each host row, shape (host rows,)."""
        return call_classes(self._trace.host)

    @cached_property
    def _rows(self) -> dict[int, np.ndarray]:
        """Host rows of each thread."""
        return dict(by_thread(self.thread))

    @cached_property
    def _spans(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        spans = self._trace.spans
        phase, phases = codes(spans, "phase")
        basis, bases = codes(spans, "basis")
        value = np.array([PHASES.index(p) for p in phases] or [0])[phase] * len(BASES) if len(phase) else phase
        value = value + (np.array([BASES.index(b) for b in bases])[basis] if len(basis) else 0)
        return ints(spans, "start_ns"), ints(spans, "end_ns"), ints(spans, "thread"), value.astype(np.int16)

    @cached_property
    def _event_phase(self) -> np.ndarray:
        """Packed phase of each host row that has one of its own, else -1; shape (host rows,)."""
        (kind, kinds), (code, names) = (codes(self._trace.host, c) for c in ("kind", "name"))
        collective = np.array([name.startswith(_COLLECTIVE_OPS) for name in names], bool)
        named, else_ = pack("collective"), {"op": pack("framework"), "range": NONE}
        by_kind = {kind: np.where(collective, named, value) for kind, value in else_.items()}
        by_kind["launch"] = np.full(len(names), pack("launch"))
        of_name = np.full((len(kinds), len(names)), NONE, np.int16)
        for i, name in enumerate(kinds):
            of_name[i] = by_kind.get(name, NONE)
        of_call = np.array([pack(_CALL_PHASE[c]) if c in _CALL_PHASE else NONE for c in range(OTHER + 1)], np.int16)
        own = of_name.reshape(-1)[kind * len(names) + code] if len(code) else _NO_ROWS
        return np.where(self.calls == NOT_A_CALL, own, of_call[self.calls])

    def _warm(self, thread: int) -> Steps:
        rows = self._rows.get(thread, _NO_ROWS)
        rows = rows[self._event_phase[rows] != NONE]
        start, end, on, value = self._spans
        told = np.flatnonzero((on == thread) & (value >= _FIRST_WARM))
        if not len(told):
            return innermost(self.start, self.end, rows, self._event_phase)
        return innermost(
            np.concatenate([self.start[rows], start[told]]),
            np.concatenate([self.end[rows], end[told]]),
            value=np.concatenate([self._event_phase[rows], value[told]]),
        )

    def _elsewhere(self, thread: int) -> Steps:
        """Cold phases of the process's other threads, marked inferred; of several, the one that ends last."""
        start, end, on, value = self._spans
        process = self._processes
        rows = np.flatnonzero(value < _FIRST_WARM)
        rows = rows[(process[on[rows]] == process[thread]) & (on[rows] != thread)] if len(rows) else rows
        inferred = phase_of(value[rows]) * len(BASES) + BASES.index("inferred")
        return last_to_end(start[rows], end[rows], inferred)

    @cached_property
    def _processes(self) -> np.ndarray:
        return process_of(self._trace)

    def _alive(self, thread: int) -> Steps:
        rows = self._rows.get(thread, _NO_ROWS)
        bounds = np.array([self.start[rows].min(), self.end[rows].max()]) if len(rows) else rows
        return Steps(bounds, np.full(1, HOST, np.int16)) if len(rows) and bounds[1] > bounds[0] else NOTHING
