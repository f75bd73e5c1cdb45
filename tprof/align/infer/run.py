"""Run the inference rules over every thread of a trace and collect what they found as columns and small tables."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tprof.align.calls import NOT_A_CALL, call_classes, holds, is_kind
from tprof.align.infer.benchmarks import find_benchmarks
from tprof.align.infer.loads import Subprocesses, load_layers
from tprof.align.infer.marks import Marks, lazy_layers, mark_layers
from tprof.align.infer.thread import Cold, FirstUse, Layer, Pair, ThreadView
from tprof.align.infer.tokens import Ops, Tokens, device_ops, thread_tokens
from tprof.align.ranges import process_of, request_rows
from tprof.events import PURPOSES
from tprof.intervals import NONE, Steps, edges, union
from tprof.model import Trace, codes, ints

WORK, SETUP, TUNING = (PURPOSES.index(p) for p in ("work", "setup", "tuning"))
_INIT_CALLS = ("cuInit", "cudaFree", "cudaOccup", "cuLibraryLoad")
_LAZY = ("Lazy Function Loading", "Runtime Triggered Module Loading")


@dataclass
class Inference:
    """What was found. Lists hold one entry per thread that had anything."""

    purpose: np.ndarray  # index into PURPOSES per host row that enqueued work, else -1
    layers: dict[int, tuple[list[Layer], Steps]] = field(default_factory=dict)  # thread -> layers, which one when
    views: list[ThreadView] = field(default_factory=list)
    uses: dict[int, list[FirstUse]] = field(default_factory=dict)
    segments: dict[int, list[Pair]] = field(default_factory=dict)


def infer(trace: Trace, requests: tuple[str, ...] = ()) -> Inference:
    """Find benchmark loops and cold phases.

    Args:
        trace: with launches linked.
        requests: globs of the ranges that are requests; a quiet stretch never reaches back beyond one's begin.
    """
    ops, op = device_ops(trace)
    evidence = _Evidence(trace, requests)
    found = Inference(np.full(trace.host.num_rows, NONE))
    for tokens in thread_tokens(trace, op):
        _infer_thread(tokens, ops, evidence, found)
    return found


def _infer_thread(tokens: Tokens, ops: Ops, evidence: _Evidence, found: Inference) -> None:
    benchmarks = find_benchmarks(tokens, ops)
    recorded = evidence.recorded[tokens.thread]
    if recorded:  # the recorder saw every candidate of Triton's; a graph compiler's own benchmarks are left to deduce
        benchmarks = [b for b in benchmarks if not ops.triton[list(b.unit)].any()]
    view = ThreadView(tokens, ops, benchmarks, evidence.requests(tokens.thread))
    cold = _cold(view, evidence)
    layers, uses = cold.layers, cold.uses
    if recorded:
        unseen = ("init",) if evidence.recorded_graphs[tokens.thread] else ("graph_compile", "init")
        layers, uses = [x for x in layers if x.phase in unseen], []
    layers = [*_between_benchmarks(view), *layers, *_benchmark_layers(view)]
    found.views.append(view)
    found.uses[tokens.thread], found.segments[tokens.thread] = uses, cold.segments
    found.layers[tokens.thread] = (layers, paint(layers))
    _set_purposes(view, cold.segments, found.purpose)


def _cold(view: ThreadView, evidence: _Evidence) -> Cold:
    cold, thread = Cold(), view.tokens.thread
    marks = evidence.marks(thread)
    mark_layers(view, marks, cold)
    lazy_layers(view, evidence.lazy, cold, has_marks=bool(len(marks.dynamo)))
    names = evidence.names[view.tokens.row]
    load_layers(view, names, evidence.init_calls(thread), evidence.subprocesses(thread), cold)
    return cold


def _benchmark_layers(view: ThreadView) -> list[Layer]:
    tokens = view.tokens
    return [
        Layer(
            int(tokens.start[b.first]), int(tokens.end[b.last]), "autotune", "benchmark loop", benchmark_kernel(view, i)
        )
        for i, b in enumerate(view.benchmarks)
    ]


def benchmark_kernel(view: ThreadView, index: int) -> str:
    """The kernel that a benchmark timed: the first of its unit that neither fills nor moves memory."""
    unit = view.benchmarks[index].unit
    return next((view.ops.name[o] for o in unit if view.ops.kernel[o] and not view.ops.fill[o]), view.ops.name[unit[0]])


def _between_benchmarks(view: ThreadView) -> list[Layer]:
    """Two benchmarks with no other launch between belong to one tuning; colder evidence is painted over it."""
    layers, tokens = [], view.tokens
    for before, after in zip(view.benchmarks, view.benchmarks[1:], strict=False):
        begin, end = int(tokens.end[before.last]), int(tokens.start[after.first])
        if end > begin and not view.launches[before.last + 1 : after.first].any():
            layers.append(Layer(begin, end, "autotune", "between benchmark loops"))
    return layers


def _set_purposes(view: ThreadView, segments: list[Pair], purpose: np.ndarray) -> None:
    """Benchmarks and their inputs are tuning; what else a graph compiler launches while it compiles is set-up."""
    tokens = view.tokens
    kind = np.full(len(tokens), WORK)
    for low, high in segments:
        inside = (tokens.start >= low) & (tokens.start < high)
        kind[inside] = np.where(view.inputs[inside], TUNING, SETUP)
    kind[view.member != NONE] = TUNING
    purpose[tokens.row[view.launches]] = kind[view.launches]


def paint(layers: list[Layer]) -> Steps:
    """Which layer shows when, each painted over the ones before it."""
    bounds = edges(np.array([t for layer in layers for t in (layer.start, layer.end)], np.int64))
    shown = np.full(max(len(bounds) - 1, 0), NONE)
    for i, layer in enumerate(layers):
        shown[np.searchsorted(bounds, layer.start) : np.searchsorted(bounds, layer.end)] = i
    return Steps(bounds if len(shown) else bounds[:0], shown)


class _Evidence:
    """Rows of the whole trace that the rules ask for, by thread."""

    def __init__(self, trace: Trace, patterns: tuple[str, ...]) -> None:
        """`recorded`, `recorded_graphs`: of each thread, whether our recorder saw its process, and its compiler."""
        host = trace.host
        self._start, self._end, self._thread = (ints(host, c) for c in ("start_ns", "end_ns", "thread"))
        code, names = codes(host, "name")
        self.names = np.array([*names, ""], object)[code]
        self._os, ranges = is_kind(host, "osrt"), is_kind(host, "range")
        self.lazy = np.sort(self._start[is_kind(host, "overhead") & holds(host, "name", lambda n: n.startswith(_LAZY))])
        self._init = (call_classes(host) != NOT_A_CALL) & holds(host, "name", lambda n: n.startswith(_INIT_CALLS))
        process, graphs = process_of(trace), holds(host, "phase", "graph_compile".__eq__)
        self.recorded, self.recorded_graphs = (
            np.isin(process, process[self._thread[rows]]) for rows in (is_kind(host, "cold", "launch"), graphs)
        )
        self._requests = request_rows(trace, patterns)
        self._marks = {
            "dynamo": ranges & holds(host, "name", lambda n: n.startswith("dynamo_data") and "compile_id=" in n),
            "phase": ranges & holds(host, "name", lambda n: "compile_id=" in n),
            "call": ranges & holds(host, "name", lambda n: n.startswith("## Call CompiledFxGraph")),
        }

    def requests(self, thread: int) -> tuple[np.ndarray, np.ndarray]:
        """Disjoint request ranges of a thread."""
        rows = self._requests[self._thread[self._requests] == thread]
        return union(self._start[rows], self._end[rows])

    def init_calls(self, thread: int) -> np.ndarray:
        """Begins of library-initialisation calls of a thread, sorted."""
        return np.sort(self._start[self._init & (self._thread == thread)])

    def subprocesses(self, thread: int) -> Subprocesses:
        """Calls of a thread that start or await another process, in time order."""
        rows = np.flatnonzero(self._os & (self._thread == thread))
        rows = rows[np.argsort(self._start[rows], kind="stable")]
        return Subprocesses(self._start[rows], self._end[rows], self.names[rows], recorded=bool(self._os.any()))

    def marks(self, thread: int) -> Marks:
        """Rows that a graph compiler left on a thread."""
        here = {k: np.flatnonzero(flags & (self._thread == thread)) for k, flags in self._marks.items()}
        rows = {k: r[np.argsort(self._start[r], kind="stable")] for k, r in here.items()}
        return Marks(
            self._start[rows["dynamo"]],
            (self._start[rows["phase"]], self._end[rows["phase"]]),
            self._start[rows["call"]],
        )
