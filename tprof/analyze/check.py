"""Gates: does a recording keep within limits? Each passes, trips, or says why the data cannot tell."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tprof.align.calls import is_kind
from tprof.analyze.busy import event_purposes
from tprof.analyze.cold import cold_totals
from tprof.analyze.devices import device_rows
from tprof.analyze.kernels import kernel_rows
from tprof.analyze.requests import request_budgets
from tprof.analyze.result import Result, Row, few, source_rows, weakest
from tprof.analyze.rows import labelled, percentile
from tprof.events import COLD_PHASES, PATHS, PURPOSES
from tprof.intervals import NONE, clip, covered
from tprof.model import codes, ints

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tprof.analyze.attribution import Attribution
    from tprof.analyze.options import Options

PASSED, TRIPPED, UNKNOWN = "passed", "tripped", "cannot judge"
_COMPILING: Final = ("compile", "launcher_build", "graph_compile")
_NO_HOST: Final = "no host events were recorded; record CPU activity too"
_NO_DEVICE: Final = "no device events were recorded; record CUDA activity"


@dataclass(frozen=True)
class Limits:
    """What may be asked; a number that is None, and an empty mapping, is not.

    Attributes:
        cold_after_ready: first uses, candidates and graph compiles or captures after `tprof.ready()`.
        compile_s: thread time in compile, launcher build and graph compile, s.
        autotune_s: thread time in autotune, s.
        cold_tax_p99_ms: 99th percentile of the requests' cold tax by nearest rank, ms.
        cold_share: part of the window in which any thread was in a cold phase.
        idle: idle part of the span of the most idle device.
        paths: glob over kernels and operators -> the path that all of their work must take.
        kernels: glob over ranges and operators -> kernels that each of them must launch.
    """

    cold_after_ready: int | None = None
    compile_s: float | None = None
    autotune_s: float | None = None
    cold_tax_p99_ms: float | None = None
    cold_share: float | None = None
    idle: float | None = None
    paths: Mapping[str, str] = field(default_factory=dict)
    kernels: Mapping[str, int] = field(default_factory=dict)


def check(attribution: Attribution, options: Options, limits: Limits, more: list[Row] | None = None) -> Result:
    """Judge every gate that is asked for.

    Args:
        attribution: of the trace.
        options: what part of it.
        limits: the gates.
        more: rows of other gates, such as `diff.regressions`.

    Returns:
        Rows of gate, state (passed, tripped, cannot judge), value, limit, unit, why, basis.
    """
    trace = attribution.trace
    rows = [
        judge(attribution, options, limit)
        for name, judge in _GATES.items()
        if (limit := getattr(limits, name)) is not None
    ]
    rows += [_path(attribution, options, glob, path) for glob, path in limits.paths.items()]
    rows += [_kernels(attribution, glob, number) for glob, number in limits.kernels.items()]
    rows += more or []
    flat = [row | {key: _text(row[key]) for key in ("value", "limit")} for row in rows]  # one type for a column
    return Result("check", {"gates": flat}, {"gates": rows}, trace.notes, source_rows(trace))


def _text(value: float | str | None) -> str | None:
    return f"{value:.4g}" if isinstance(value, float) else None if value is None else str(value)


def verdict(rows: list[Row]) -> str:
    """The worst state of some gates: one that tripped outweighs one that cannot judge."""
    states = {row["state"] for row in rows}
    return next((state for state in (TRIPPED, UNKNOWN) if state in states), PASSED)


def judged(gate: str, value: float, limit: float, unit: str, *, why: str = "", basis: str = "recorded") -> Row:
    """Row of a gate on the largest value that is allowed."""
    return _row(gate, TRIPPED if value > limit else PASSED, value, limit, unit, why, basis)


def unknown(gate: str, limit: Any, unit: str, why: str) -> Row:
    """Row of a gate that the data cannot tell."""
    return _row(gate, UNKNOWN, None, limit, unit, why, "unattributed")


def _row(*columns: Any) -> Row:
    return dict(zip(("gate", "state", "value", "limit", "unit", "why", "basis"), columns, strict=True))


# ---- cold start


def _after_ready(attribution: Attribution, _: Options, limit: int) -> Row:
    trace = attribution.trace
    ready = {r["process"]: r["start_ns"] for r in trace.startup.to_pylist() if r["kind"] == "ready"}
    if not ready:
        return unknown("max-cold-after-ready", limit, "events", "no process called tprof.ready(); record with tprof")
    # A process that never said so, such as a compile worker, serves those that did.
    since = [ready.get(process, max(ready.values())) for process in trace.threads["process"].to_pylist()]
    graphs = [s for s in trace.spans.to_pylist() if s["phase"] in {"graph_compile", "graph_capture"}]
    late = [
        row
        for row in (*trace.compiles.to_pylist(), *trace.candidates.to_pylist(), *graphs)
        if row["start_ns"] >= since[row["thread"]]
    ]
    why = few([row["kernel"] or row.get("phase") or "a kernel that was never launched" for row in late])
    return judged("max-cold-after-ready", len(late), limit, "events", why=why, basis=weakest(late))


def _time_in(gate: str, phases: tuple[str, ...]) -> Callable[[Attribution, Options, float], Row]:
    def judge(attribution: Attribution, options: Options, limit: float) -> Row:
        if not attribution.trace.host.num_rows:
            return unknown(gate, limit, "s", _NO_HOST)
        totals = cold_totals(attribution, options.window or attribution.extent)
        value = sum(totals[f"{phase}_ns"] for phase in phases) / 1e9
        held = totals["compile_includes"] if "compile" in phases else []
        why = f"includes {', '.join(held)}, which this trace cannot tell apart" if held else ""
        return judged(gate, value, limit, "s", why=why, basis=totals["basis"])

    return judge


def _cold_tax(attribution: Attribution, options: Options, limit: float) -> Row:
    rows = request_budgets(attribution, replace(options, top=None))
    if not rows:
        return unknown("max-cold-tax-p99-ms", limit, "ms", "no request was found; name the ranges with --range")
    worst = max(rows, key=lambda row: row["cold_tax_ns"])
    tax = percentile(np.sort([row["cold_tax_ns"] for row in rows]), 99) or 0
    why = f"{len(rows)} requests; the most was that of {worst['name']}"
    return judged("max-cold-tax-p99-ms", tax / 1e6, limit, "ms", why=why, basis=weakest(rows))


def _cold_share(attribution: Attribution, options: Options, limit: float) -> Row:
    trace, window = attribution.trace, options.window or attribution.extent
    if not trace.host.num_rows:
        return unknown("max-cold-share", limit, "of the window", _NO_HOST)
    cold = labelled(trace.spans, "phase", COLD_PHASES)
    start, end = (ints(trace.spans, name)[cold] for name in ("start_ns", "end_ns"))
    share = covered(*clip(start, end, *window)) / max(window[1] - window[0], 1)
    return judged("max-cold-share", share, limit, "of the window", basis=cold_totals(attribution, window)["basis"])


def _idle(attribution: Attribution, options: Options, limit: float) -> Row:
    rows = device_rows(attribution, options, options.window or attribution.extent)
    rows = [row for row in rows if row["span_ns"]]
    if not rows:
        return unknown("max-idle", limit, "of the span", _NO_DEVICE)
    worst = max(rows, key=lambda row: row["idle_ns"] / row["span_ns"])
    most = next(iter(worst["idle_by_phase"]), "nothing")
    why = f"device {worst['device']}, mostly {most}"
    return judged("max-idle", worst["idle_ns"] / worst["span_ns"], limit, "of the span", why=why)


_GATES: Final[dict[str, Callable[[Attribution, Options, Any], Row]]] = {
    "cold_after_ready": _after_ready,
    "compile_s": _time_in("max-compile-s", _COMPILING),
    "autotune_s": _time_in("max-autotune-s", ("autotune",)),
    "cold_tax_p99_ms": _cold_tax,
    "cold_share": _cold_share,
    "idle": _idle,
}

# ---- what ran


def _path(attribution: Attribution, options: Options, glob: str, path: str) -> Row:
    """All working kernels of that name, or that an operator of that name launched, take one path; copies aside."""
    gate, none = f"expect-path {glob}", f"no kernel or operator matches {glob}"
    rows = [
        row
        for row in kernel_rows(attribution, options)
        if row["purpose"] == "work" and row["path"] in {*PATHS} - {"memory"} | {path}
        if any(fnmatchcase(row[key] or "", glob) for key in ("name", "origin"))
    ]
    if not rows:
        return unknown(gate, path, "", none if attribution.events else _NO_DEVICE)
    others = [row for row in rows if row["path"] != path]
    value, why = few((row["path"] for row in others or rows), 1), few(f"{r['name']} is {r['path']}" for r in others)
    return _row(gate, TRIPPED if others else PASSED, value, path, "", why, "inferred")


def _kernels(attribution: Attribution, glob: str, number: int) -> Row:
    """Every range or operator of that name launches so many kernels."""
    gate, trace = f"expect-kernels {glob}", attribution.trace
    code, names = codes(trace.host, "name")
    wanted = labelled(trace.host, "name", lambda name: fnmatchcase(name, glob))
    ranges = np.flatnonzero(wanted & is_kind(trace.host, "range", "startend", "request", "op"))
    if not attribution.events or not len(ranges):
        return unknown(gate, number, "kernels", f"no range matches {glob}" if attribution.events else _NO_DEVICE)
    counts = _launched(attribution, ranges)
    wrong = ranges[counts != number]
    if len(wrong) and (ints(trace.device, "launch") == NONE).any():
        return unknown(gate, number, "kernels", "some kernels have no recorded launch; they may belong to the range")
    found = "/".join(str(n) for n in np.unique(counts).tolist())
    pairs = zip(wrong.tolist(), counts[counts != number].tolist(), strict=True)
    why = few(f"{names[code[row]]}: {n}" for row, n in pairs)
    return _row(gate, TRIPPED if len(wrong) else PASSED, found, number, "kernels", why, "recorded")


def _launched(attribution: Attribution, ranges: np.ndarray) -> np.ndarray:
    """Working kernels that were launched inside each range on its own thread, shape (ranges,)."""
    trace = attribution.trace
    start, end, thread = (ints(trace.host, name) for name in ("start_ns", "end_ns", "thread"))
    launch = ints(trace.device, "launch")
    working = (event_purposes(trace) == PURPOSES.index("work")) & is_kind(trace.device, "kernel", "graph")
    launch = launch[(launch != NONE) & working]
    out = np.zeros(len(ranges), np.int64)
    for on in np.unique(thread[ranges]).tolist():
        called = np.sort(start[launch[thread[launch] == on]])
        mine = thread[ranges] == on
        out[mine] = np.searchsorted(called, end[ranges[mine]]) - np.searchsorted(called, start[ranges[mine]])
    return out
