"""Run the inference rules over every thread of a trace and collect what they found as columns and small tables."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.calls import NOT_A_CALL, call_classes, is_kind
from tprof.align.infer.benchmarks import find_benchmarks
from tprof.align.infer.loads import Pair, Subprocesses, load_layers
from tprof.align.infer.marks import Marks, lazy_layers, mark_layers
from tprof.align.infer.thread import FirstUse, Layer, ThreadView
from tprof.align.infer.tokens import Ops, Tokens, device_ops, thread_tokens
from tprof.align.ranges import process_of, request_rows
from tprof.events import PURPOSES
from tprof.intervals import NONE, Steps, edges, union
from tprof.model import Trace, codes, ints

if TYPE_CHECKING:
    from collections.abc import Callable

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
    recorded = evidence.recorded(tokens.thread)
    if recorded:  # the recorder saw every candidate of Triton's; a graph compiler's own benchmarks are left to deduce
        benchmarks = [b for b in benchmarks if not ops.triton[list(b.unit)].any()]
    view = ThreadView(tokens, ops, benchmarks, evidence.requests(tokens.thread))
    layers, uses, segments = _cold(view, evidence)
    if recorded:
        unseen = ("init",) if evidence.recorded_graphs(tokens.thread) else ("graph_compile", "init")
        layers, uses = [x for x in layers if x.phase in unseen], []
    layers = [*_between_benchmarks(view), *layers, *_benchmark_layers(view)]
    found.views.append(view)
    found.uses[tokens.thread], found.segments[tokens.thread] = uses, segments
    found.layers[tokens.thread] = (layers, paint(layers))
    _set_purposes(view, segments, found.purpose)


def _cold(view: ThreadView, evidence: _Evidence) -> tuple[list[Layer], list[FirstUse], list[Pair]]:
    marks = evidence.marks(view.tokens.thread)
    layers, segments = mark_layers(view, marks)
    lazy = lazy_layers(view, evidence.lazy, has_marks=bool(len(marks.dynamo)))
    names = evidence.names[view.tokens.row]
    thread = view.tokens.thread
    load = load_layers(view, names, evidence.init_calls(thread), evidence.subprocesses(thread))
    return [*layers, *lazy[0], *load[0]], [*lazy[1], *load[1]], [*segments, *lazy[2], *load[2]]


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
        host = trace.host
        self._start, self._end, self._thread = (ints(host, c) for c in ("start_ns", "end_ns", "thread"))
        code, names = codes(host, "name")
        self._code, self._values = code, names
        self.names = np.array(names, object)[code] if len(code) else np.zeros(0, object)
        self._os, self._ranges = is_kind(host, "osrt"), is_kind(host, "range")
        self._calls = call_classes(host) != NOT_A_CALL
        self.lazy = np.sort(self._start[is_kind(host, "overhead") & self._named(lambda n: n.startswith(_LAZY))])
        self._init = self._calls & self._named(lambda n: n.startswith(_INIT_CALLS))
        process = process_of(trace)
        seen = np.unique(process[self._thread[is_kind(host, "cold", "launch")]])
        self._recorded = np.isin(process, seen)
        phase, phases = codes(host, "phase")
        graphs = phase == phases.index("graph_compile") if "graph_compile" in phases else np.zeros(len(phase), bool)
        self._graphs = np.isin(process, np.unique(process[self._thread[graphs]]))
        self._requests = request_rows(trace, patterns)
        self._marks = {
            "dynamo": self._ranges & self._named(lambda n: n.startswith("dynamo_data") and "compile_id=" in n),
            "phase": self._ranges & self._named(lambda n: "compile_id=" in n),
            "call": self._ranges & self._named(lambda n: n.startswith("## Call CompiledFxGraph")),
        }

    def _named(self, test: Callable[[str], bool]) -> np.ndarray:
        by_name = np.array([test(n) for n in self._values] or [False])
        return by_name[self._code] if len(self._code) else np.zeros(0, bool)

    def requests(self, thread: int) -> tuple[np.ndarray, np.ndarray]:
        """Disjoint request ranges of a thread."""
        rows = self._requests[self._thread[self._requests] == thread]
        return union(self._start[rows], self._end[rows])

    def recorded_graphs(self, thread: int) -> bool:
        """Whether the recorder also saw the graph compiler of that process."""
        return bool(self._graphs[thread])

    def recorded(self, thread: int) -> bool:
        """Whether tprof's recorder was at work in the process of a thread."""
        return bool(self._recorded[thread])

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
