"""Cold phases from a compiler's own marks and lazy-loading rows: what a torch.profiler trace can tell.

Such a trace records neither module loads nor subprocesses, so compile, disk lookup, launcher build and load of one
kernel are one stretch, called `compile` and marked inferred. A `dynamo_data` row marks a phase's begin, not its extent.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tprof.align.infer.loads import QUIET_NS
from tprof.align.infer.thread import Cold, FirstUse, Layer, ThreadView

COMPILE_OR_LOAD = "compile or load: a quiet stretch that ends in a lazy load"


@dataclass(frozen=True)
class Marks:
    """Rows that a graph compiler left on one thread; sorted int64 arrays."""

    dynamo: np.ndarray  # begins of `dynamo_data` marks
    phase: tuple[np.ndarray, np.ndarray]  # begins and ends of every mark that names a compile_id
    call: np.ndarray  # begins of `## Call CompiledFxGraph`


def mark_layers(view: ThreadView, marks: Marks, cold: Cold) -> None:
    """Graph compilation: from a `dynamo_data` mark, and the quiet stretch before it, to the compiled graph's call."""
    stops = np.append(marks.dynamo, np.iinfo(np.int64).max)[1:]
    for begin, stop in zip(marks.dynamo, stops, strict=True):
        token = int(np.searchsorted(view.tokens.start, begin))
        low = view.stretch_start(token, int(begin), graph=False)
        call = marks.call[(marks.call > begin) & (marks.call < stop)]
        phases = marks.phase[1][(marks.phase[0] >= begin) & (marks.phase[0] < stop)]
        high = int(call[0]) if len(call) else int(phases.max(initial=begin))
        cold.layers.append(Layer(low, high, "graph_compile", "compiler's marks"))
        cold.segments.append((low, high))
        if len(call):
            first = view.next(view.launches, int(np.searchsorted(view.tokens.start, high)))
            if first and view.tokens.start[first] - high > QUIET_NS:
                end = int(view.tokens.start[first])
                cold.layers.append(Layer(high, end, "init", "first call of a compiled graph"))


def lazy_layers(view: ThreadView, lazy: np.ndarray, cold: Cold, *, has_marks: bool) -> None:
    """Quiet stretches that end in a kernel's launch with a lazy load right before it.

    Args:
        view: the thread's calls and benchmarks.
        lazy: begins of `Lazy Function Loading` and `Runtime Triggered Module Loading` rows, sorted.
        cold: takes what is found.
        has_marks: the graph compiler's own marks cover the stretches of generated kernels.
    """
    begin = view.tokens.start
    previous = np.concatenate([begin[:1], view.tokens.end[:-1]])
    loaded = np.searchsorted(lazy, begin + 1) > np.searchsorted(lazy, previous - 1000)
    for i in np.flatnonzero(view.triton & loaded).tolist():
        graph = bool(view.inductor[i])
        if graph and has_marks:
            cold.uses.append(FirstUse(int(begin[i]), int(begin[i]), view.kernel(i), graph, None, None))
            continue
        at = int(begin[i])
        low = view.stretch_start(i, at, graph=graph)
        if at - low <= QUIET_NS:
            continue
        cold.layers.append(Layer(low, at, "graph_compile" if graph else "compile", COMPILE_OR_LOAD, view.kernel(i)))
        cold.uses.append(FirstUse(low, at, view.kernel(i), graph, None, None, int(view.member[i])))
        if graph:
            cold.segments.append((low, at))
