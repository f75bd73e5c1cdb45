"""What each thread was doing at every instant: the first half of DESIGN's rules of attribution.

A cold span wins over anything warm; else the innermost event that has a phase of its own; else, while another thread of
the same process is cold, that thread's phase (inferred); else `host` between the thread's first and last event.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from tprof.align.calls import ALLOC, COPY, GRAPH, LAUNCH, SYNC, call_classes, is_kind
from tprof.align.ranges import process_of
from tprof.events import BASES, COLD_PHASES, PHASES, Basis, Phase
from tprof.intervals import NONE, Steps, edges, innermost
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
_COLD = len(COLD_PHASES)


class Timelines:
    """Exclusive phases of the threads of a trace, computed per thread when asked for."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._start, self._end, self._thread = (ints(trace.host, c) for c in ("start_ns", "end_ns", "thread"))
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
            rows = np.flatnonzero((on == thread) & (phase_of(value) < _COLD))
            self._cold[thread] = _valued(start[rows], end[rows], value[rows])
        return self._cold[thread]

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
        host = self._trace.host
        calls = call_classes(host)
        out = np.full(host.num_rows, NONE, np.int16)
        out[is_kind(host, "op")] = pack("framework")
        code, names = codes(host, "name")
        collective = [i for i, n in enumerate(names) if n.startswith(_COLLECTIVE_OPS)]
        out[np.isin(code, collective) & is_kind(host, "op", "range")] = pack("collective")
        out[is_kind(host, "launch")] = pack("launch")
        for kind, phase in _CALL_PHASE.items():
            out[calls == kind] = pack(phase)
        return out

    def _warm(self, thread: int) -> Steps:
        rows = np.flatnonzero((self._thread == thread) & (self._event_phase != NONE))
        start, end, on, value = self._spans
        told = np.flatnonzero((on == thread) & (phase_of(value) >= _COLD))
        return _valued(
            np.concatenate([self._start[rows], start[told]]),
            np.concatenate([self._end[rows], end[told]]),
            np.concatenate([self._event_phase[rows], value[told]]),
        )

    def _elsewhere(self, thread: int) -> Steps:
        """Cold phases of the process's other threads, marked inferred; of several, the one that ends last."""
        start, end, on, value = self._spans
        process = self._processes
        rows = (
            np.flatnonzero((process[on] == process[thread]) & (on != thread) & (phase_of(value) < _COLD))
            if len(on)
            else on
        )
        rows = rows[np.argsort(end[rows], kind="stable")]
        bounds = edges(start[rows], end[rows])
        shown = np.full(max(len(bounds) - 1, 0), NONE)
        for row in rows.tolist():
            shown[np.searchsorted(bounds, start[row]) : np.searchsorted(bounds, end[row])] = row
        inferred = phase_of(value[shown]) * len(BASES) + BASES.index("inferred") if len(shown) else shown
        return Steps(bounds if len(shown) else bounds[:0], np.where(shown == NONE, NONE, inferred))

    @cached_property
    def _processes(self) -> np.ndarray:
        return process_of(self._trace)

    def process(self, thread: int) -> int:
        """Number of the process that a thread belongs to."""
        return int(self._processes[thread])

    def _alive(self, thread: int) -> Steps:
        rows = self._thread == thread
        if not rows.any():
            return Steps(np.zeros(0, np.int64), np.zeros(0, np.int64))
        bounds = np.array([self._start[rows].min(), self._end[rows].max()])
        return Steps(bounds, np.array([HOST])) if bounds[1] > bounds[0] else Steps(bounds[:0], bounds[:0])


def _valued(start: np.ndarray, end: np.ndarray, value: np.ndarray) -> Steps:
    """Value of the innermost event over time."""
    steps = innermost(start, end)
    return Steps(steps.bounds, np.where(steps.value == NONE, NONE, value[steps.value])) if len(steps.value) else steps
