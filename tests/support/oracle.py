"""Where the time went, by brute force: DESIGN's rules asked anew at every instant between two events of a trace.

Nothing of the product is used here: no sweep, no interval algebra, no numpy, no vocabulary. Time is cut at every edge
of every event; within such a piece nothing changes, so each rule is decided at its first nanosecond by looking at all
events.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise

COLD = ("compile", "cache", "launcher_build", "module_load", "autotune", "graph_compile", "graph_capture", "init")
PURPOSES = ("work", "setup", "warmup", "capture", "tuning")
CALLS = {
    "cudaLaunchKernel": "launch",
    "cuLaunchKernelEx": "launch",
    "hipModuleLaunchKernel": "launch",
    "cudaGraphLaunch": "launch",
    "cudaMemcpyAsync": "memory",
    "cudaMemsetAsync": "memory",
    "cudaMalloc": "memory",
    "cudaFree": "memory",
    "cudaDeviceSynchronize": "sync",
    "cudaStreamSynchronize": "sync",
    "cudaEventSynchronize": "sync",
}
COLLECTIVES = ("nccl:", "c10d::")
KERNEL_WAIT_NS = 30_000

Value = tuple[str, str]  # phase and basis
LAUNCH, HOST, UNKNOWN = ("launch", "recorded"), ("host", "recorded"), ("unattributed", "unattributed")
TURNAROUND, DEPENDENCY, GRAPH = ("turnaround", "recorded"), ("dependency", "recorded"), ("graph", "recorded")


@dataclass(frozen=True)
class HostEvent:
    start: int
    end: int
    thread: int
    kind: str
    name: str


@dataclass(frozen=True)
class DeviceEvent:
    start: int
    end: int
    device: int
    stream: tuple[int, int, int, int]  # pid, device, context, stream
    launch: int | None
    purpose: str
    row: int

    @property
    def order(self) -> tuple[int, tuple[int, int, int, int], int]:
        return self.start, self.stream, self.row


@dataclass(frozen=True)
class Span:
    start: int
    end: int
    thread: int
    phase: str
    basis: str


@dataclass(frozen=True)
class Figures:
    """What the oracle says of one device in one window."""

    events: int
    unlinked: int
    overlaps: int
    sum_ns: int
    by: Counter[tuple[str, str, str]]  # (busy, idle, lead or tail; purpose or phase; basis) -> ns

    def where(self, where: str) -> int:
        return sum(ns for key, ns in self.by.items() if key[0] == where)

    def phases(self, where: str) -> dict[str, int]:
        found: Counter[str] = Counter()
        for (at, phase, _), ns in self.by.items():
            found[phase] += ns if at == where else 0
        return {phase: ns for phase, ns in found.items() if ns}

    def wall(self) -> dict[str, int]:
        return {
            f"{where}.{p}": ns for where in ("busy", "idle", "lead", "tail") for p, ns in self.phases(where).items()
        }

    def inferred(self) -> int:
        return sum(ns for (where, _, basis), ns in self.by.items() if where != "busy" and basis == "inferred")


@dataclass(frozen=True)
class Budget:
    """What the oracle says of one request."""

    phases: dict[str, int]
    tax: int
    exposed: int
    inferred: bool
    device: dict[str, int]


@dataclass(frozen=True)
class Oracle:
    host: list[HostEvent]
    device: list[DeviceEvent]
    spans: list[Span]
    process: list[object]  # of each thread
    _doing: dict[tuple[int, int], Value] = field(default_factory=dict, repr=False)

    @cached_property
    def extent(self) -> tuple[int, int]:
        real = [e for e in self.host if e.kind not in ("overhead", "mark")] + self.device
        return (min(e.start for e in real), max(e.end for e in real)) if real else (0, 0)

    @cached_property
    def edges(self) -> list[int]:
        every = [*self.host, *self.device, *self.spans]
        return sorted({t for e in every for t in (e.start, e.end)} | set(self.extent))

    def devices(self) -> list[int]:
        return sorted({e.device for e in self.device})

    # ---- what a thread was doing

    def doing(self, thread: int, t: int) -> Value:
        key = (thread, t)
        if key not in self._doing:
            self._doing[key] = (
                self.cold(thread, t) or self._warm(thread, t) or self._elsewhere(thread, t) or self._alive(thread, t)
            )
        return self._doing[key]

    def cold(self, thread: int, t: int) -> Value | None:
        here = [
            (s.start, -s.end, i)
            for i, s in enumerate(self.spans)
            if s.thread == thread and s.phase in COLD and s.start <= t < s.end
        ]
        return self._of(max(here)[2]) if here else None

    def _of(self, span: int) -> Value:
        return self.spans[span].phase, self.spans[span].basis

    def _warm(self, thread: int, t: int) -> Value | None:
        found = []
        for i, e in enumerate(self.host):
            if e.thread == thread and e.start <= t < e.end and (phase := _phase(e)):
                found.append((e.start, -e.end, i, (phase, "recorded")))
        for i, s in enumerate(self.spans):
            if s.thread == thread and s.phase not in COLD and s.start <= t < s.end:
                found.append((s.start, -s.end, len(self.host) + i, self._of(i)))
        return max(found)[3] if found else None

    def _elsewhere(self, thread: int, t: int) -> Value | None:
        others = [
            (s.end, i)
            for i, s in enumerate(self.spans)
            if s.thread != thread
            and self.process[s.thread] == self.process[thread]
            and s.phase in COLD
            and s.start <= t < s.end
        ]
        return (self.spans[max(others)[1]].phase, "inferred") if others else None

    def _alive(self, thread: int, t: int) -> Value:
        mine = [e for e in self.host if e.thread == thread]
        return HOST if mine and min(e.start for e in mine) <= t < max(e.end for e in mine) else UNKNOWN

    # ---- what a device was doing

    def at(self, device: int, t: int) -> tuple[str, str, str]:
        """Where and what one instant of a device was."""
        if t < self.extent[0]:
            return ("lead", *UNKNOWN)
        if t >= self.extent[1]:
            return ("tail", *UNKNOWN)
        events = [e for e in self.device if e.device == device]
        running = {e.purpose for e in events if e.start <= t < e.end}
        if running:
            return "busy", next(p for p in PURPOSES if p in running), "recorded"
        first, last = min(e.start for e in events), max(e.end for e in events)
        if t >= last:
            return ("tail", *self._tail(events, t))
        return ("lead" if t < first else "idle", *self._gap(events, t))

    def _tail(self, events: list[DeviceEvent], t: int) -> Value:
        linked = [e for e in sorted(events, key=lambda e: e.order) if e.launch is not None]
        return self.doing(self.host[linked[-1].launch].thread, t) if linked else UNKNOWN

    def _gap(self, events: list[DeviceEvent], t: int) -> Value:
        """Rules 1 to 5 for an instant of the gap that holds it."""
        solid = [e for e in events if e.end > e.start]
        last = max(e.end for e in events)
        g0 = max([e.end for e in solid if e.end <= t], default=None)
        g1 = min([e.start for e in solid if e.start > t], default=last)
        first = min(e.start for e in events)
        if t < first:
            g0, g1 = self.extent[0], first
        elif g0 is None:
            g0 = first
        k = min((e for e in events if e.start == g1), key=lambda e: e.order)
        if k.launch is None:
            return UNKNOWN
        call = self.host[k.launch]
        if call.name == "cudaGraphLaunch" and any(e.launch == k.launch and e.order < k.order for e in events):
            return GRAPH
        if t < call.start:
            return self.doing(call.thread, t)
        if t < call.end:
            return self.cold(call.thread, t) or LAUNCH
        if call.end > g0 or t < first:
            return LAUNCH
        before = [e for e in events if e.stream == k.stream and e.order < k.order]
        return TURNAROUND if before and max(before, key=lambda e: e.order).end == g0 else DEPENDENCY

    # ---- sums over a window

    def figures(self, device: int, low: int, high: int) -> Figures:
        events = sorted((e for e in self.device if e.device == device), key=lambda e: e.order)
        inside = [e for e in events if _touches(e, low, high)]
        by: Counter[tuple[str, str, str]] = Counter()
        for a, b in self._cut(low, high):
            by[self.at(device, a)] += b - a
        return Figures(
            events=len(inside),
            unlinked=sum(e.launch is None for e in inside),
            overlaps=sum(
                e.start < max((o.end for o in events if o.stream == e.stream and o.order < e.order), default=e.start)
                for e in inside
            ),
            sum_ns=sum(max(min(e.end, high) - max(e.start, low), 0) for e in events),
            by=by,
        )

    def _cut(self, low: int, high: int) -> list[tuple[int, int]]:
        at = sorted({low, high} | {t for t in self.edges if low < t < high})
        return list(pairwise(at))

    def stream(self, stream: tuple[int, int, int, int], low: int, high: int) -> dict[str, int]:
        """One stream's busy and idle time inside a window, and HTA's split of the latter."""
        events = sorted((e for e in self.device if e.stream == stream), key=lambda e: e.order)
        found = Counter(busy_ns=0, idle_ns=0, host_wait_ns=0, kernel_wait_ns=0, other_ns=0, unlinked_ns=0)
        for a, b in self._cut(low, high):
            if any(e.start <= a < e.end for e in events):
                found["busy_ns"] += b - a
                continue
            before, after = [e for e in events if e.end <= a], [e for e in events if e.start > a]
            if not before or not after:
                continue
            ended, next_one = max(e.end for e in before), min(after, key=lambda e: e.order)
            found["idle_ns"] += b - a
            found[self._hta(ended, next_one)] += b - a
        return dict(found)

    def _hta(self, ended: int, event: DeviceEvent) -> str:
        if event.launch is None:
            return "unlinked_ns"
        if self.host[event.launch].start > ended:
            return "host_wait_ns"
        return "kernel_wait_ns" if event.start - ended < KERNEL_WAIT_NS else "other_ns"

    # ---- requests

    def request(self, row: int) -> Budget:
        request = self.host[row]
        phases: Counter[str] = Counter()
        tax = exposed = 0
        inferred = False
        for a, b in self._cut(request.start, request.end):
            phase, basis = self.doing(request.thread, a)
            phases[phase] += b - a
            inferred |= basis == "inferred"
            # `at` is asked of every device: what is recorded outside its own events is idle, lead or tail.
            running = {self.at(d, a)[:2] for d in self.devices()}
            busy = {what for where, what in running if where == "busy"}
            if phase in COLD or (phase == "sync" and busy == {"tuning"}):
                tax += b - a
                exposed += 0 if "work" in busy else b - a
        return Budget(dict(phases), tax, exposed, inferred, self._launched(request))

    def _launched(self, request: HostEvent) -> dict[str, int]:
        mine = [
            e
            for e in self.device
            if e.launch is not None
            and self.host[e.launch].thread == request.thread
            and request.start <= self.host[e.launch].start < request.end
        ]
        found: Counter[str] = Counter()
        at = sorted({t for e in mine for t in (e.start, e.end)})
        for a, b in pairwise(at):
            for purpose in {e.purpose for e in mine if e.start <= a < e.end}:
                found[purpose] += b - a
        return dict(found)


def _phase(event: HostEvent) -> str | None:
    """Phase that an event has of its own; the others are transparent."""
    if event.kind in ("op", "range") and event.name.startswith(COLLECTIVES):
        return "collective"
    if event.kind == "op":
        return "framework"
    return CALLS.get(event.name) if event.kind in ("runtime", "driver") else None


def _touches(event: DeviceEvent, low: int, high: int) -> bool:
    """An event of no length belongs to every window whose edge or inside it lies in."""
    if event.start == event.end:
        return low <= event.start <= high
    return event.start < high and event.end > low
