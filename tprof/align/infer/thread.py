"""One thread as the rules for cold phases see it.

Its calls, which of them belong to a benchmark, and where a quiet stretch that ends in a piece of evidence began.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.calls import DESTROY, ENQUEUES, LAUNCH, QUERY, RECORD, SYNC
from tprof.intervals import NONE

if TYPE_CHECKING:
    from tprof.align.infer.benchmarks import Benchmark
    from tprof.align.infer.tokens import Ops, Tokens
    from tprof.events import Phase

Pair = tuple[int, int]
INPUTS_NS = 60_000_000  # a library benchmark's random inputs are launched within this time before it
BURST_NS = 20_000_000  # and a longer pause among them ends the burst


@dataclass(frozen=True)
class Layer:
    """A stretch of one phase. Layers are painted in order: a later one wins."""

    start: int
    end: int
    phase: Phase
    evidence: str
    kernel: str | None = None


@dataclass(frozen=True)
class FirstUse:
    """A compiled kernel becoming usable: when, for whom, and the loads that show it (None: the trace records none)."""

    start: int
    end: int
    kernel: str | None
    graph_compile: bool
    cache_hit: bool | None
    loads: int | None
    candidate: int = NONE  # index into the thread's benchmarks


@dataclass
class Cold:
    """What evidence of cold time shows of a thread; segments are those of a graph compiler."""

    layers: list[Layer] = field(default_factory=list)
    uses: list[FirstUse] = field(default_factory=list)
    segments: list[Pair] = field(default_factory=list)


@dataclass
class ThreadView:
    """Calls of one thread and what the rules have found in them so far."""

    tokens: Tokens
    ops: Ops
    benchmarks: list[Benchmark]
    requests: tuple[np.ndarray, np.ndarray]  # disjoint request ranges on this thread
    member: np.ndarray = field(init=False)  # benchmark of each token, -1 for none
    inputs: np.ndarray = field(init=False)  # launches that made the inputs of a graph compiler's benchmark
    launches: np.ndarray = field(init=False)
    triton: np.ndarray = field(init=False)
    inductor: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        """Derive what several rules ask for."""
        tokens, known = self.tokens, self.tokens.op >= 0
        self.launches = np.isin(tokens.kind, ENQUEUES)
        self.triton = (tokens.kind == LAUNCH) & known & self.ops.triton[tokens.op]
        self.inductor = self.triton & self.ops.inductor[tokens.op]
        self.member = np.full(len(tokens), NONE)
        for i, benchmark in enumerate(self.benchmarks):
            self.member[benchmark.first : benchmark.last + 1] = i
        self.inputs = np.zeros(len(tokens), bool)
        for benchmark in self.benchmarks:
            if not self.ops.triton[list(benchmark.unit)].any():
                self._mark_inputs(benchmark)

    def _mark_inputs(self, benchmark: Benchmark) -> None:
        """A library benchmark is a graph compiler's: mark the burst of launches right before it, its random inputs."""
        tokens, begin = self.tokens, self.tokens.start[benchmark.first]
        for x in range(benchmark.first - 1, -1, -1):
            if begin - tokens.end[x] >= INPUTS_NS or self.member[x] != NONE or self.triton[x]:
                break
            self.inputs[x] = self.launches[x]
            if x and tokens.start[x] - tokens.end[x - 1] > BURST_NS:
                break

    def kernel(self, token: int | None) -> str | None:
        """Name of what a token launched."""
        return self.ops.name[self.tokens.op[token]] if token is not None and self.tokens.op[token] >= 0 else None

    def next(self, flags: np.ndarray, after: int) -> int | None:
        """First token at or after `after` where a flag holds."""
        found = np.flatnonzero(flags[after:])
        return after + int(found[0]) if len(found) else None

    def stretch_start(self, token: int, instant: int, *, graph: bool) -> int:
        """When the quiet stretch before `token` began; nothing before the request is charged to it.

        Args:
            token: the call that is the evidence, or the first one after it.
            instant: when the evidence was seen, ns.
            graph: a graph compiler's stretch runs across its own benchmarks, their inputs and the constants it copies.
        """
        last = self._last_busy(token, graph=graph)
        low = int(self.tokens.end[last]) if last is not None else int(self.tokens.start[0])
        begin, end = self.requests
        open_request = np.flatnonzero((begin <= instant) & (instant <= end))
        return max(low, int(begin[open_request[0]])) if len(open_request) else low

    def _last_busy(self, token: int, *, graph: bool) -> int | None:
        tokens, x = self.tokens, token - 1
        while x >= 0:
            kind, member = tokens.kind[x], self.member[x]
            if self.launches[x]:
                if not graph:
                    return x
                if member != NONE:
                    x = self.benchmarks[member].first
                elif not (self.inputs[x] or (tokens.op[x] >= 0 and self.ops.small[tokens.op[x]])):
                    return x
            elif not graph and self._ends_work(x, kind, member):
                return x
            x -= 1
        return None

    def _ends_work(self, x: int, kind: int, member: int) -> bool:
        """Whether a call that launches nothing still belongs to the work before a stretch."""
        if member != NONE and kind in (RECORD, QUERY, DESTROY, SYNC):
            return True
        return kind == SYNC and x > 0 and bool(self.launches[x - 1])
