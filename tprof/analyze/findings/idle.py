"""Warm causes of idle devices: waits in the hot path, launches that come too slowly, and whatever else is largest.

Where requests are known only idle time within them counts: between requests a device has nothing to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tprof.align.calls import SYNC
from tprof.analyze.attribution import BUSY, IDLE
from tprof.analyze.findings.facts import Facts, counted
from tprof.analyze.findings.records import doubts
from tprof.analyze.timeline import phase_of
from tprof.events import COLD_PHASES, PHASES
from tprof.intervals import intersect, total, union

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tprof.analyze.busy import Set
    from tprof.analyze.result import Row

_MATTERS: Final = 0.1  # of the device's span, or of the time in requests
_SHORT_NS: Final = 100_000  # a gap that one launch from Python explains
_STRETCH: Final = 20  # gaps in a row from which on a stretch is launch-bound
_DENSE: Final = 0.3  # of such a stretch, waiting for launches
_OFTEN: Final = 3  # waits from which on they are a habit
_SYNC: Final = PHASES.index("sync")
_LAUNCHES: Final = ("launch", "framework", "host", "turnaround")  # what fills short gaps between kernels
_LAUNCHING: Final = [PHASES.index(p) for p in _LAUNCHES]
_WARM: Final = {
    "host": ("the launching thread ran other code", "see what it did: a CPU profiler, or ranges around its stages"),
    "framework": ("the launching thread was in operator code", "launch less: fuse, torch.compile, or a CUDA graph"),
    "launch": ("launches took their time", "launch less: fuse, or replay a CUDA graph"),
    "sync": ("the launching thread waited for a device", "remove the wait, or enqueue the next work before it"),
    "memory": ("the launching thread allocated or copied", "reuse buffers; copy from pinned memory, non_blocking=True"),
    "collective": ("the launching thread was in a collective", "compare the ranks: one of them came late"),
    "turnaround": ("kernels followed one another", "fuse short kernels, or replay a CUDA graph"),
    "dependency": ("work waited for other work", "look for events or streams that serialize the device"),
    "graph": ("nodes of a CUDA graph waited for one another", "look at the graph's dependencies"),
}
_FIX_SYNC: Final = (
    "remove .item(), .cpu(), print and synchronize() from the hot path: keep the value on the device, or read it one "
    "step later from pinned memory"
)
_FIX_LAUNCH: Final = 'replay a CUDA graph (torch.compile(mode="reduce-overhead")), or fuse: kernels end before the next'


@dataclass(frozen=True)
class _Idle:
    """Idle pieces of a device that count, in time order; arrays of shape (pieces,)."""

    label: str
    start: np.ndarray
    end: np.ndarray
    phase: np.ndarray
    gap: np.ndarray
    of: tuple[str, int]  # what could have been busy, ns

    def where(self, chosen: np.ndarray) -> Set:
        """Instants of some pieces."""
        return union(self.start[chosen], self.end[chosen])

    def finding(self, facts: Facts, code: str, title: str, cost: Set, **rest: Any) -> list[Row]:
        """A finding, if it is a tenth of what could have been busy."""
        matters = total(*cost) > _MATTERS * self.of[1]
        return [facts.finding(code, title, cost, of=self.of, **rest)] if matters else []

    def gaps(self, chosen: np.ndarray) -> int:
        """How many gaps some pieces are of."""
        return len(np.unique(self.gap[chosen]))

    @property
    def first(self) -> np.ndarray:
        """First piece of each gap."""
        return np.sort(np.unique(self.gap, return_index=True)[1])


def warm_idle(facts: Facts) -> Iterator[Row]:
    """Per device: waits in the hot path, launch-bound stretches, and the largest cause that neither explains."""
    for row in facts.devices:
        if not any(doubts(facts, row)):
            idle = _idle(facts, row, facts.numbers[row["device"]])
            waits, launches = _waits(facts, idle), _launch_bound(facts, idle)
            told = [*(["sync"] if waits else []), *(_LAUNCHES if launches else [])]
            yield from (*waits, *launches, *_largest(facts, idle, told))


def _idle(facts: Facts, row: Row, device: int) -> _Idle:
    pieces = facts.attribution.pieces(device)
    busy = pieces.where == BUSY
    span = (int(pieces.start[busy].min()), int(pieces.end[busy].max())) if busy.any() else facts.window
    inside = facts.served if facts.requests else facts.set_of([span])
    start, end, at, _ = intersect((pieces.start, pieces.end), inside)
    kept = pieces.where[at] == IDLE
    start, end, at = start[kept], end[kept], at[kept]
    of = ("time in requests", total(*inside)) if facts.requests else ("device's span", row["span_ns"])
    return _Idle(row["device"], start, end, phase_of(pieces.value[at]), pieces.gap[at], of)


def _largest(facts: Facts, idle: _Idle, told: list[str]) -> list[Row]:
    """The largest warm phase, unless a sharper finding tells it."""
    spent = {phase: idle.where(idle.phase == PHASES.index(phase)) for phase in _WARM}
    phase = max(spent, key=lambda p: total(*spent[p]))
    if phase in told:
        return []
    title, fix = _WARM[phase]
    gaps = idle.gaps(idle.phase == PHASES.index(phase))
    why = f"device {idle.label} was idle meanwhile, in {counted(gaps, 'gap')}"
    return idle.finding(facts, f"idle-{phase}", title, spent[phase], why=why, fix=fix, count=gaps)


def _waits(facts: Facts, idle: _Idle) -> list[Row]:
    """Gaps that began while the launching thread waited for the device: it ran dry although there was more to do."""
    first = idle.first
    drained = np.isin(idle.gap, idle.gap[first[idle.phase[first] == _SYNC]])
    cost, gaps = idle.where(drained & (idle.phase >= len(COLD_PHASES))), idle.gaps(drained)
    if gaps < _OFTEN or not total(*cost):
        return []
    start, end = facts.times("host")
    around = np.flatnonzero((facts.calls == SYNC) & (end > cost[0][0]) & (start < cost[1][-1]))
    title = f"device {idle.label} ran dry because the host waited for it"
    why = f"{counted(gaps, 'gap')} began during a wait: {facts.most(around, 2)}"
    return idle.finding(facts, "sync-in-hot-path", title, cost, why=why, fix=_FIX_SYNC, count=gaps)


def _launch_bound(facts: Facts, idle: _Idle) -> list[Row]:
    """Runs of short gaps in which the device waited for the next launch."""
    bound, stretches = _bound(idle)
    if not stretches:
        return []
    cost, gaps = idle.where(bound & np.isin(idle.phase, _LAUNCHING)), idle.gaps(bound)
    title = f"device {idle.label} waited for the next launch"
    why = f"{counted(gaps, 'gap')} shorter than {_SHORT_NS // 1000} us in {counted(stretches, 'stretch')}"
    return idle.finding(facts, "launch-bound", title, cost, why=why, fix=_FIX_LAUNCH, count=gaps)


def _bound(idle: _Idle) -> tuple[np.ndarray, int]:
    """Whether each piece lies in a launch-bound stretch, and how many stretches there are."""
    first = idle.first
    if not len(first):
        return np.zeros(0, bool), 0
    length = idle.end - idle.start
    begin, finish = idle.start[first], idle.end[np.append(first[1:], len(length)) - 1]
    launching = np.add.reduceat(length * np.isin(idle.phase, _LAUNCHING), first)
    short = (finish - begin < _SHORT_NS) & (2 * launching > finish - begin)
    follows = short[1:] & short[:-1] & (begin[1:] - finish[:-1] < _SHORT_NS)
    run = np.cumsum(np.concatenate([[True], ~follows])) - 1
    opens = np.unique(run, return_index=True)[1]
    closes = np.append(opens[1:], len(run)) - 1
    dense = np.add.reduceat(launching, opens) > _DENSE * (finish[closes] - begin[opens])
    bound = short[opens] & (closes - opens + 1 >= _STRETCH) & dense
    return np.repeat(bound[run], np.diff(np.append(first, len(length)))), int(bound.sum())
