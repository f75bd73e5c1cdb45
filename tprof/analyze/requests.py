"""Requests: the same partition of time, seen from the thread that served each, and what of it was cold."""

from __future__ import annotations

import json
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.calls import is_kind
from tprof.align.ranges import request_rows
from tprof.analyze.busy import event_purposes
from tprof.analyze.cold import compile_includes
from tprof.analyze.result import Result, Row, source_rows
from tprof.analyze.timeline import UNATTRIBUTED, basis_of, phase_of
from tprof.events import BASES, COLD_PHASES, PHASES, PURPOSES
from tprof.intervals import NONE, Steps, covered, intersect, subtract, total, union
from tprof.model import Trace, codes, ints

if TYPE_CHECKING:
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.options import Options

Set = tuple[np.ndarray, np.ndarray]
_SYNC, _COLD, _INFERRED = PHASES.index("sync"), len(COLD_PHASES), BASES.index("inferred")
_WORK, _TUNING = PURPOSES.index("work"), PURPOSES.index("tuning")
_EMPTY: Set = (np.zeros(0, np.int64), np.zeros(0, np.int64))


def requests(attribution: Attribution, options: Options) -> Result:
    """Budget of every request that overlaps the window, in time order."""
    rows = request_budgets(attribution, options)
    trace = attribution.trace
    payload = {"requests": rows, "compile_includes": compile_includes(trace, options.window or attribution.extent)}
    columns = dict.fromkeys((key for row in rows for key in _named(row)), 0)
    flat = [{**{k: v for k, v in row.items() if not isinstance(v, dict)}, **columns, **_named(row)} for row in rows]
    return Result("requests", {"requests": flat}, payload, trace.notes, source_rows(trace))


def _named(row: Row) -> Row:
    """Phases and device time of a request as flat columns."""
    return {f"{phase}_ns": ns for phase, ns in row["phases"].items()} | {
        f"device_{purpose}_ns": ns for purpose, ns in row["device_by_purpose"].items()
    }


def request_budgets(attribution: Attribution, options: Options) -> list[Row]:
    """One row per request: `phases` sums to `wall_ns`; cold tax is accounting, no promise of what would be saved."""
    trace = attribution.trace
    rows = request_rows(trace, options.ranges)
    start, end = ints(trace.host, "start_ns"), ints(trace.host, "end_ns")
    if options.window:
        rows = rows[(end[rows] > options.window[0]) & (start[rows] < options.window[1])]
    served = _Served(attribution)
    return [served.budget(row) for row in rows[np.argsort(start[rows], kind="stable")].tolist()][: options.top]


class _Served:
    """What the budgets of all requests share."""

    def __init__(self, attribution: Attribution) -> None:
        trace = attribution.trace
        self.attribution = attribution
        self.start, self.end, self.thread = (ints(trace.host, c) for c in ("start_ns", "end_ns", "thread"))
        self.code, self.names = codes(trace.host, "name")
        self.working, self.only_tuning = _device_sets(attribution)
        self._launched = _launched_by_thread(trace, self.thread, self.start)
        self._request = ints(trace.host, "request")
        self._serves = np.flatnonzero(is_kind(trace.host, "serve"))
        self._kernels = np.flatnonzero(is_kind(trace.host, "launch") & (self._request != NONE))
        self._cold = ints(trace.host, "cold")
        self._attrs = trace.host["attrs"]

    def _stretches(self, row: int) -> list[tuple[int, int, int]]:
        """(thread, begin, end) of each stretch in which a thread served the request, the latest first.

        A recorder says so; of a plain range it is the thread on which the range is open.
        """
        serves = self._serves[self._request[self._serves] == row]
        rows = serves if len(serves) else np.array([row])
        order = rows[np.argsort(-self.start[rows], kind="stable")]
        return [(int(self.thread[r]), int(self.start[r]), int(self.end[r])) for r in order]

    def _doing(self, stretches: list[tuple[int, int, int]]) -> Steps:
        """What the serving threads were doing: something cold on any of them, else the one that began last."""
        lines = self.attribution.timelines
        cold = [lines.cold(thread).within(low, high) for thread, low, high in stretches]
        rest = [lines.of(thread).within(low, high) for thread, low, high in stretches]
        return reduce(Steps.or_else, [*cold, *rest])

    def _id(self, row: int) -> str | None:
        """The id that the caller gave, where a recorder knows it."""
        text = self._attrs[row].as_py()
        found = json.loads(text).get("request_id") if text else None
        return None if found is None else str(found)

    def _launches(self, row: int) -> Row:
        """Kernel launches that were recorded as the request's own, and those for which something was cold."""
        mine = self._kernels[self._request[self._kernels] == row]
        return (
            {"launches": len(mine), "cold_launches": int((self._cold[mine] == 1).sum())} if len(self._kernels) else {}
        )

    def budget(self, row: int) -> Row:
        """Where one request's time went."""
        low, high = int(self.start[row]), int(self.end[row])
        stretches = self._stretches(row)
        s, e, value, _ = self._doing(stretches).over(np.array([low]), np.array([high]))
        value = np.where(value == NONE, UNATTRIBUTED, value)
        phase = phase_of(value)
        spent = np.bincount(phase, e - s, len(PHASES)).astype(np.int64)
        cold = union(s[phase < _COLD], e[phase < _COLD])
        waiting = (s[phase == _SYNC], e[phase == _SYNC])
        tuned = intersect(waiting, self.only_tuning)[:2]
        tax = union(np.concatenate([cold[0], tuned[0]]), np.concatenate([cold[1], tuned[1]]))
        inferred = bool(((basis_of(value) == _INFERRED) & (e > s)).any())
        return {
            "name": self.names[self.code[row]],
            "id": self._id(row),
            "start_ns": low,
            "at_ns": low - self.attribution.extent[0],
            "wall_ns": high - low,
            "cold_tax_ns": total(*tax),
            "cold_exposed_ns": total(*subtract(tax, self.working)),
            "phases": {PHASES[i]: int(spent[i]) for i in np.argsort(-spent, kind="stable") if spent[i]},
            "sync_by_device": self._sync(waiting, total(*tuned)),
            "device_by_purpose": self._device(stretches),
            **self._launches(row),
            "basis": "inferred" if inferred else "recorded",
        }

    def _sync(self, waiting: Set, tuned: int) -> dict[str, int]:
        """Waiting for a device, by what the devices were doing."""
        worked = total(*intersect(waiting, self.working)[:2])
        return {"work": worked, "tuning": tuned, "idle_or_other": total(*waiting) - worked - tuned}

    def _device(self, stretches: list[tuple[int, int, int]]) -> dict[str, int]:
        """Device time of what was launched in the stretches, by purpose: the union of each purpose's executions."""
        parts = []
        for thread, low, high in stretches:
            called, *columns = self._launched.get(thread, (np.zeros(0, np.int64),) * 4)
            at = slice(*np.searchsorted(called, (low, high)))
            parts.append([column[at] for column in columns])
        first, last, purpose = (np.concatenate(column) for column in zip(*parts, strict=True))
        return {name: ns for i, name in enumerate(PURPOSES) if (ns := covered(first[purpose == i], last[purpose == i]))}


def _device_sets(attribution: Attribution) -> tuple[Set, Set]:
    """Instants at which any device worked, and at which devices only tuned."""
    sets = list(attribution.busy.values())
    working = _any([s[_WORK] for s in sets])
    others = _any([s[i] for s in sets for i in range(len(PURPOSES)) if i != _TUNING])
    return working, subtract(_any([s[_TUNING] for s in sets]), others)


def _any(sets: list[Set]) -> Set:
    return union(np.concatenate([s[0] for s in sets]), np.concatenate([s[1] for s in sets])) if sets else _EMPTY


def _launched_by_thread(trace: Trace, thread: np.ndarray, start: np.ndarray) -> dict[int, tuple[np.ndarray, ...]]:
    """Per launching thread: launch begin (sorted), device begin, device end, purpose of what it launched."""
    launch = ints(trace.device, "launch")
    rows = np.flatnonzero(launch != NONE)
    rows = rows[np.argsort(start[launch[rows]], kind="stable")]
    purpose = event_purposes(trace)[rows]
    first, last = ints(trace.device, "start_ns")[rows], ints(trace.device, "end_ns")[rows]
    on = thread[launch[rows]]
    called = start[launch[rows]]
    return {int(t): (called[on == t], first[on == t], last[on == t], purpose[on == t]) for t in np.unique(on)}
