"""Requests: the same partition of time, seen from the thread that served each, and what of it was cold."""

from __future__ import annotations

import json
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.calls import is_kind
from tprof.align.ranges import by_thread, request_rows
from tprof.analyze.busy import event_purposes, joined
from tprof.analyze.census import Census
from tprof.analyze.cold import compile_includes
from tprof.analyze.latency import distribution, first_and_steady, job
from tprof.analyze.request_details import Details
from tprof.analyze.result import Result, Row, flat, source_rows
from tprof.analyze.shapes import bucket_rows, shape_rows
from tprof.analyze.timeline import UNATTRIBUTED, basis_of, phase_of
from tprof.events import BASES, COLD_PHASES, PHASES, PURPOSES, WARM_PHASES
from tprof.intervals import NONE, Steps, covered, intersect, subtract, summed, total, union
from tprof.model import Trace, codes, ints

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tprof.analyze.attribution import Attribution
    from tprof.analyze.busy import Set
    from tprof.analyze.options import Options

_SYNC, _COLD, _INFERRED = PHASES.index("sync"), len(COLD_PHASES), BASES.index("inferred")
_UNKNOWN = PHASES.index("unattributed")
_WORK, _TUNING = PURPOSES.index("work"), PURPOSES.index("tuning")


def requests(attribution: Attribution, options: Options, reference: Mapping[str, int] | None = None) -> Result:
    """Budget of every request that overlaps the window, in time order; their latency; what their cold start cost.

    Args:
        attribution: of the trace.
        options: `buckets` are those that misses are counted by.
        reference: steady latency to compare with, by request name (`all` for all), ns.
    """
    trace = attribution.trace
    served, census = _Served(attribution), Census(attribution, options, served=True)
    details = Details(census)
    rows = [served.row(row, details) for row in request_order(trace, options)]
    steady = first_and_steady(rows, reference)
    tables = {
        "requests": [_flat(row) for row in rows[: options.top]],
        "latency": distribution(rows) if rows else [],
        "first_steady": steady,
        "causes": [_cold_request(row) for row in rows if row["cold_tax_ns"]][: options.top],
        "buckets": bucket_rows(shape_rows(census)) if options.buckets else [],
        "job": [_job(attribution, census, steady)],
    }
    payload: Row = {"requests": rows[: options.top], **{k: tables[k] for k in ("latency", "first_steady", "buckets")}}
    payload |= {"job": tables["job"][0], "compile_includes": compile_includes(trace, census.window)}
    return Result("requests", tables, payload, trace.notes, source_rows(trace))


def _flat(row: Row) -> Row:
    """A request without what is nested; phases and device time as columns."""
    nothing = None if row["device_work_ns"] is None else 0  # no device was recorded
    return flat(row) | {
        **{f"{phase}_ns": row["phases"].get(phase, 0) for phase in (*COLD_PHASES, *WARM_PHASES)},
        **{f"device_{purpose}_ns": row["device_by_purpose"].get(purpose, nothing) for purpose in PURPOSES},
    }


def _cold_request(row: Row) -> Row:
    """A cold request and what caused it: the kernel and shape that most cold time went to, and how many others."""
    main: Row = next((c for c in row["causes"] if c["kernel"]), {})
    return {
        **{k: row[k] for k in ("name", "id", "at_ns", "wall_ns", "cold_tax_ns", "cause", "misses")},
        "cold_share": row["cold_tax_ns"] / row["wall_ns"] if row["wall_ns"] else 0.0,
        **{f"{phase}_ns": row["phases"].get(phase, 0) for phase in COLD_PHASES},
        **{k: main.get(k) for k in ("kernel", "label", "shape", "bucket")},
        "other_kernels": len({c["kernel"] for c in row["causes"]} - {None, main.get("kernel")}),
        "basis": row["basis"],
    }


def _job(attribution: Attribution, census: Census, steady: list[Row]) -> Row:
    """What share of the window the cold start is, requests or not."""
    cold = union(census.charges.start, census.charges.end)
    exposed = total(*subtract(cold, device_sets(attribution)[0])) if attribution.events else None
    return job(census.window[1] - census.window[0], total(*cold), exposed, steady[0] if steady else None)


def request_order(trace: Trace, options: Options) -> list[int]:
    """Rows of `host` that are requests and overlap the window, by begin."""
    rows = request_rows(trace, options.ranges)
    start, end = ints(trace.host, "start_ns")[rows], ints(trace.host, "end_ns")[rows]
    if options.window:
        inside = (end > options.window[0]) & (start < options.window[1])
        rows, start = rows[inside], start[inside]
    return rows[np.argsort(start, kind="stable")].tolist()


def request_budgets(attribution: Attribution, options: Options) -> list[Row]:
    """One row per request: `phases` sums to `wall_ns`; cold tax is accounting, no promise of what would be saved."""
    served = _Served(attribution)
    return [served.budget(row) for row in request_order(attribution.trace, options)[: options.top]]


class _Served:
    """What the budgets of all requests share."""

    def __init__(self, attribution: Attribution) -> None:
        trace = attribution.trace
        self.attribution = attribution
        self.start, self.end, self.thread = (ints(trace.host, c) for c in ("start_ns", "end_ns", "thread"))
        self.code, self.names = codes(trace.host, "name")
        self.working, self.only_tuning = device_sets(attribution)
        self._launched = _launched_by_thread(trace, self.thread, self.start)
        self._request = ints(trace.host, "request")
        serves = np.flatnonzero(is_kind(trace.host, "serve"))
        self._serves = serves[np.lexsort((-self.start[serves], self._request[serves]))]
        self._served = self._request[self._serves]
        kernels = np.flatnonzero(is_kind(trace.host, "launch") & (self._request != NONE))
        kernels = kernels[np.argsort(self._request[kernels], kind="stable")]
        self._kernel_request, self._kernel_cold = self._request[kernels], ints(trace.host, "cold")[kernels] == 1
        self._attrs = trace.host["attrs"]

    def _stretches(self, row: int) -> list[tuple[int, int, int]]:
        """(thread, begin, end) of each stretch in which a thread served the request, the latest first.

        A recorder says so; of a plain range it is the thread on which the range is open.
        """
        serves = self._serves[slice(*np.searchsorted(self._served, (row, row + 1)))].tolist()
        return [(int(self.thread[r]), int(self.start[r]), int(self.end[r])) for r in serves or [row]]

    def _doing(self, stretches: list[tuple[int, int, int]]) -> Steps:
        """What the serving threads were doing: something cold on any of them, else the one that began last."""
        lines = self.attribution.timelines
        own = [lines.of(thread).within(low, high) for thread, low, high in stretches]
        if len(own) == 1:
            return own[0]
        cold = [lines.cold(thread).within(low, high) for thread, low, high in stretches]
        return reduce(Steps.or_else, [*cold, *own])

    def _id(self, row: int) -> str | None:
        """The id that the caller gave, where a recorder knows it."""
        text = self._attrs[row].as_py()
        found = json.loads(text).get("request_id") if text else None
        return None if found is None else str(found)

    def _launches(self, row: int) -> Row:
        """Kernel launches that were recorded as the request's own, and those for which something was cold."""
        if not len(self._kernel_request):
            return {}
        mine = self._kernel_cold[slice(*np.searchsorted(self._kernel_request, (row, row + 1)))]
        return {"launches": len(mine), "cold_launches": int(mine.sum())}

    def row(self, row: int, details: Details) -> Row:
        """Budget of a request, and what else there is to say of it."""
        budget = self.budget(row)
        return budget | details.of(row, budget, self._stretches(row))

    def budget(self, row: int) -> Row:
        """Where one request's time went."""
        low, high = int(self.start[row]), int(self.end[row])
        stretches = self._stretches(row)
        doing = self._doing(stretches).within(low, high)
        s, e, value = doing.bounds[:-1], doing.bounds[1:], np.where(doing.value == NONE, UNATTRIBUTED, doing.value)
        phase = phase_of(value)
        spent = summed(phase, e - s, len(PHASES))
        spent[_UNKNOWN] += high - low - total(s, e)
        cold = union(s[phase < _COLD], e[phase < _COLD])
        waiting = (s[phase == _SYNC], e[phase == _SYNC])
        tuned = intersect(waiting, self.only_tuning)[:2]
        tax = union(np.concatenate([cold[0], tuned[0]]), np.concatenate([cold[1], tuned[1]]))
        inferred = set(phase[(basis_of(value) == _INFERRED) & (e > s)].tolist())
        largest_first = [i for i in np.argsort(-spent, kind="stable").tolist() if spent[i]]
        return {
            "name": self.names[self.code[row]],
            "id": self._id(row),
            "start_ns": low,
            "at_ns": low - self.attribution.extent[0],
            "wall_ns": high - low,
            "cold_tax_ns": total(*tax),
            "cold_exposed_ns": total(*subtract(tax, self.working)),
            "phases": {PHASES[i]: int(spent[i]) for i in largest_first},
            "basis_by_phase": {PHASES[i]: "inferred" if i in inferred else "recorded" for i in largest_first},
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
        spent = {i: covered(first[purpose == i], last[purpose == i]) for i in sorted(set(purpose.tolist()))}
        return {PURPOSES[i]: ns for i, ns in spent.items() if ns}


def device_sets(attribution: Attribution) -> tuple[Set, Set]:
    """Instants at which any device worked, and at which devices only tuned."""
    sets = list(attribution.busy.values())
    others = joined([s[i] for s in sets for i in range(len(PURPOSES)) if i != _TUNING])
    return joined([s[_WORK] for s in sets]), subtract(joined([s[_TUNING] for s in sets]), others)


def _launched_by_thread(trace: Trace, thread: np.ndarray, start: np.ndarray) -> dict[int, tuple[np.ndarray, ...]]:
    """Per launching thread: launch begin (sorted), device begin, device end, purpose of what it launched."""
    launch = ints(trace.device, "launch")
    rows = np.flatnonzero(launch != NONE)
    rows = rows[np.argsort(start[launch[rows]], kind="stable")]
    ran = ints(trace.device, "start_ns"), ints(trace.device, "end_ns"), event_purposes(trace)
    columns = start[launch[rows]], *(column[rows] for column in ran)
    return {on: tuple(column[at] for column in columns) for on, at in by_thread(thread[launch[rows]])}
