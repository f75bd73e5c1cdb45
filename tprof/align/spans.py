"""Cold spans: for every thread and instant at most one phase, recorded or inferred, the innermost cold one winning."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from tprof.align.calls import NOT_A_CALL, call_classes
from tprof.align.infer.run import benchmark_kernel
from tprof.align.links import first_events
from tprof.align.paths import FILL
from tprof.align.ranges import open_at
from tprof.align.recorded import ColdEvents, cold_events
from tprof.events import COLD_PHASES, PHASES
from tprof.intervals import NONE, clip, innermost, summed
from tprof.model import Trace, codes, ints, labels, put, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tprof.align.infer import Inference
    from tprof.align.infer.thread import FirstUse, ThreadView


def add_spans(trace: Trace, found: Inference, phases: Mapping[str, str]) -> Trace:
    """Fill `spans`, and add to `candidates` and `compiles` what was inferred."""
    spans = _spans(trace, found, phases)
    candidates, first = _candidates(trace, found)
    compiles = _compiles(spans, found, first)
    return replace(
        trace,
        spans=spans,
        candidates=pa.concat_tables([_with_device_time(trace), candidates]).unify_dictionaries(),
        compiles=pa.concat_tables([trace.compiles, compiles]).unify_dictionaries(),
    )


def _pool(trace: Trace, found: Inference, phases: Mapping[str, str]) -> tuple[ColdEvents, int]:
    """Inferred stretches as they show after painting, then recorded events (of two equal ones the record wins).

    Returns:
        All of them, and how many are inferred.
    """
    parts = []
    for thread, (layers, steps) in found.layers.items():
        shown = np.flatnonzero(steps.value != NONE)
        chosen = [layers[i] for i in steps.value[shown]]
        parts.append((
            steps.bounds[shown], steps.bounds[shown + 1], np.full(len(shown), thread),
            np.array([PHASES.index(x.phase) for x in chosen], np.int64),
            np.array([x.evidence for x in chosen], object), np.array([x.kernel for x in chosen], object),
        ))  # fmt: skip
    told = cold_events(trace, phases)
    parts.append((told.start, told.end, told.thread, told.phase, told.name, _kernels(told, found)))
    pool = ColdEvents(*(np.concatenate(column) for column in zip(*parts, strict=True)))
    return pool, len(pool.start) - len(told.start)


def _kernels(told: ColdEvents, found: Inference) -> np.ndarray:
    """Kernel of each recorded event: as recorded, else that of the inferred stretch of its phase that it began in."""
    kernel = told.kernel.copy()
    for thread, (layers, steps) in found.layers.items():
        rows = np.flatnonzero(told.thread == thread)
        for row, i in zip(rows.tolist(), steps.at(told.start[rows]).tolist(), strict=True):
            if kernel[row] is None and i != NONE and PHASES.index(layers[i].phase) == told.phase[row]:
                kernel[row] = layers[i].kernel
    return kernel


def _spans(trace: Trace, found: Inference, phases: Mapping[str, str]) -> pa.Table:
    pool, inferred = _pool(trace, found, phases)
    begin, finish, owner = [], [], []
    # A range that the user mapped to a warm phase never hides something cold, so the two are made exclusive apart.
    group = pool.thread * 2 + (pool.phase < len(COLD_PHASES))
    for part in np.unique(group):
        rows = np.flatnonzero(group == part)
        steps = innermost(pool.start[rows], pool.end[rows])
        shown = steps.value != NONE
        begin.append(steps.bounds[:-1][shown])
        finish.append(steps.bounds[1:][shown])
        owner.append(rows[steps.value[shown]])
    if not owner:
        return table("spans")
    who = np.concatenate(owner)
    columns = {
        "start_ns": np.concatenate(begin),
        "end_ns": np.concatenate(finish),
        "thread": pool.thread[who].astype(np.int32),
        "phase": labels(pool.phase[who], PHASES),
        "basis": labels((who < inferred).astype(np.int32), ("recorded", "inferred")),
        "kernel": pool.kernel[who].tolist(),
        "evidence": pool.name[who].tolist(),
    }
    return table("spans", columns, len(who))


def _candidates(trace: Trace, found: Inference) -> tuple[pa.Table, dict[int, int]]:
    """Inferred candidates, and the first row of each thread among all candidates."""
    busy = _busy_by_launch(trace)
    rows: list[dict[str, object]] = []
    first: dict[int, int] = {}
    for view in found.views:
        first[view.tokens.thread] = trace.candidates.num_rows + len(rows)
        segments = found.segments[view.tokens.thread]
        rows += [_candidate(view, i, busy, segments) for i in range(len(view.benchmarks))]
    return table("candidates", {c: [row[c] for row in rows] for c in (rows[0] if rows else ())}, len(rows)), first


def _candidate(view: ThreadView, index: int, busy: np.ndarray, segments: list[tuple[int, int]]) -> dict[str, object]:
    benchmark, tokens = view.benchmarks[index], view.tokens
    at = slice(benchmark.first, benchmark.last + 1)
    launched = view.launches[at]
    flush = launched & np.isin(tokens.op[at], benchmark.flush)
    start = int(tokens.start[benchmark.first])
    return {
        "start_ns": start,
        "end_ns": int(tokens.end[benchmark.last]),
        "thread": tokens.thread,
        "kernel": benchmark_kernel(view, index),
        "basis": "inferred",
        "repetitions": benchmark.repetitions,
        "launches": int((launched & ~flush).sum()),
        "device_ns": int(busy[tokens.row[at][launched & ~flush]].sum()),
        "flush_ns": int(busy[tokens.row[at][flush]].sum()),
        "graph_compile": any(low <= start < high for low, high in segments),
    }


def _with_device_time(trace: Trace) -> pa.Table:
    """Recorded candidates with the device time of what was launched in them, where a device was recorded."""
    candidates = trace.candidates
    if not candidates.num_rows or not trace.device.num_rows:
        return candidates
    busy, called = _busy_by_launch(trace), call_classes(trace.host) != NOT_A_CALL
    calls = np.flatnonzero(called & (busy > 0))
    start, thread = (ints(trace.host, c)[calls] for c in ("start_ns", "thread"))
    inside, fill = open_at(candidates, np.arange(len(candidates)), start, thread), _fills(trace)[calls]
    parts = [
        summed(inside[hit], busy[calls[hit]], len(candidates)) for hit in ((inside != NONE) & f for f in (~fill, fill))
    ]
    return put(candidates, device_ns=parts[0], flush_ns=parts[1])


def _fills(trace: Trace) -> np.ndarray:
    """Whether what each host row enqueued first is a fill, shape (host rows,) bool."""
    code, names = codes(trace.device, "name")
    fill = np.array([bool(FILL.search(n)) for n in names] or [False])
    first = first_events(trace)
    return (first != NONE) & fill[np.append(code, 0)[first]]


def _busy_by_launch(trace: Trace) -> np.ndarray:
    """Summed device time of what each host row enqueued, ns; shape (host rows,)."""
    launch = ints(trace.device, "launch")
    linked = launch != NONE
    busy = np.zeros(trace.host.num_rows, np.int64)
    np.add.at(busy, launch[linked], (ints(trace.device, "end_ns") - ints(trace.device, "start_ns"))[linked])
    return busy


_TOLD_APART: Final = ("compile", "cache", "launcher_build", "module_load")


def _compiles(spans: pa.Table, found: Inference, first: dict[int, int]) -> pa.Table:
    start, end, thread = (ints(spans, c) for c in ("start_ns", "end_ns", "thread"))
    phase = np.array([PHASES.index(p) for p in spans["phase"].to_pylist()], np.int64)
    rows = []
    for on, uses in found.uses.items():
        here = thread == on
        for use in uses:
            low, high = clip(start[here], end[here], use.start, use.end)
            spent = summed(phase[here], high - low, len(PHASES))
            rows.append(_compile_row(on, use, spent, first[on]))
    return table("compiles", {c: [row[c] for row in rows] for c in (rows[0] if rows else ())}, len(rows))


def _compile_row(thread: int, use: FirstUse, spent: np.ndarray, first: int) -> dict[str, object]:
    """One row; phases that a trace without load calls cannot tell apart stay null."""
    known = _TOLD_APART if use.loads is not None else () if use.graph_compile else ("compile",)
    return {
        "start_ns": use.start,
        "end_ns": use.end,
        "thread": thread,
        "kernel": use.kernel,
        "basis": "inferred",
        "cache_hit": use.cache_hit,
        "graph_compile": use.graph_compile,
        "candidate": None if use.candidate == NONE else first + use.candidate,
        "loads": use.loads,
        **{f"{phase}_ns": int(spent[PHASES.index(phase)]) if phase in known else None for phase in _TOLD_APART},
    }
