"""Cold start: how much was compiled, looked up, built, loaded and tuned, for which kernel, and how we know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tprof.align.calls import LOAD, call_classes, is_kind
from tprof.analyze.asked import Asked
from tprof.analyze.cache_misses import cache_miss_rows
from tprof.analyze.first_uses import candidate_rows, first_use_rows, specialization_rows, thread_label
from tprof.analyze.recompiles import graph_rows
from tprof.analyze.result import Result, Row, source_rows, weakest
from tprof.analyze.rows import cold_spans, grouped, labelled, rows_inside
from tprof.analyze.searches import search_rows
from tprof.analyze.startup import startup_rows
from tprof.analyze.waterfall import waterfall_rows
from tprof.events import COLD_PHASES
from tprof.intervals import covered
from tprof.model import Trace, ints

if TYPE_CHECKING:
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.options import Options

_INCLUDED = ("cache", "launcher_build", "module_load")  # what `compile` holds where a trace cannot tell them apart


def cold(attribution: Attribution, options: Options) -> Result:
    """The cold start inside the window: totals; by phase, kernel, variant, search, candidate and graph; and its causes.

    `options.kernels` leaves in what concerns those kernels; `cold` of the payload always is of everything.
    """
    trace, window = attribution.trace, options.window or attribution.extent
    totals = cold_totals(attribution, window)
    asked = Asked(trace, options.ranges)
    spans = _about(_spans(trace, window), options)
    first_uses = _about(first_use_rows(attribution, window, asked), options)
    candidates = _about(candidate_rows(attribution, window), options)
    whole = options.window is None and not options.kernels
    tables = {
        "phases": _phases(spans, totals, window),
        "startup": startup_rows(attribution) if whole else [],
        "kernels": _kernels(spans, first_uses, candidates)[: options.top],
        "specializations": _about(specialization_rows(attribution, window, asked), options),
        "first_uses": first_uses,
        "tunings": _about(search_rows(attribution, window, asked), options),
        "candidates": candidates,
        "waterfall": waterfall_rows(spans, first_uses, candidates, attribution.extent[0]),
        "cache_misses": _about(cache_miss_rows(attribution, window), options),
        **({} if options.kernels else graph_rows(attribution, window, asked)),
    }
    said = {name: rows for name, rows in tables.items() if name != "waterfall"}  # which are `spans` again
    payload: Row = {"cold": totals, "of_kernels": list(options.kernels), **said, "spans": spans}
    return Result("cold start", tables, payload, trace.notes, source_rows(trace))


def _about(rows: list[Row], options: Options) -> list[Row]:
    """Rows about the kernels that are asked about."""
    return [row for row in rows if options.about(row["kernel"])]


def _phases(spans: list[Row], totals: Row, window: tuple[int, int]) -> list[Row]:
    """Time by phase and basis, most first."""
    wall, held = max(window[1] - window[0], 1), ", ".join(totals["compile_includes"]) or None
    rows = [
        {
            "phase": phase,
            "includes": held if phase == "compile" else None,
            "spans": len(own),
            "basis": basis,
            "of_window_share": _length(own) / wall,
            "total_ns": _length(own),
        }
        for (phase, basis), own in grouped(spans, "phase", "basis").items()
    ]
    return sorted(rows, key=lambda row: -row["total_ns"])


def _length(spans: list[Row]) -> int:
    return sum(span["end_ns"] - span["start_ns"] for span in spans)


def cold_totals(attribution: Attribution, window: tuple[int, int]) -> Row:
    """The `cold` part of `summary --format json`.

    Times are thread time inside the window (two threads compiling at once count twice); `tuning_device_ns` is the
    union of tuning executions per device. A null count cannot be known from the trace.
    """
    trace = attribution.trace
    spans = _spans(trace, window)
    by_phase = grouped(spans, "phase")
    uses = rows_inside(trace, "compiles", window)
    told = [u for u in uses if u["cache_hit"] is not None]
    loads = _module_loads(trace, window)
    return {
        "compiles": sum(u["cache_hit"] is False for u in told) if told else len(uses),
        "disk_hits": sum(u["cache_hit"] is True for u in told) if told else None,
        "module_loads": loads,
        "candidates": len(rows_inside(trace, "candidates", window)),
        **{f"{phase}_ns": _length(by_phase.get(phase, [])) for phase in COLD_PHASES},
        "compile_includes": compile_includes(trace, window),
        "tuning_device_ns": _tuning(trace, window),
        "basis_by_phase": {p: weakest(by_phase[p]) for p in COLD_PHASES if p in by_phase and _length(by_phase[p])},
        "basis": weakest(spans) if spans else "inferred",
    }


def compile_includes(trace: Trace, window: tuple[int, int]) -> list[str]:
    """Phases that `compile` holds besides itself, because the trace cannot tell them apart."""
    return list(_INCLUDED) if rows_inside(trace, "compiles", window) and _module_loads(trace, window) is None else []


def _spans(trace: Trace, window: tuple[int, int]) -> list[Row]:
    """Cold spans clipped to the window, with the thread that each was on."""
    columns = ("start_ns", "end_ns", "thread", "phase", "basis", "kernel", "evidence")
    rows = [{key: span[key] for key in columns} for span in cold_spans(trace, window)]
    return [row | {"thread": thread_label(trace, row["thread"])} for row in rows]


def _kernels(spans: list[Row], first_uses: list[Row], candidates: list[Row]) -> list[Row]:
    """Cold time by the kernel that it was spent for; null is what no single kernel can be charged with."""
    timed, used = grouped(candidates, "kernel"), grouped(first_uses, "kernel")
    rows = []
    for kernel, own in grouped(spans, "kernel").items():
        mine, by_phase = timed.get(kernel, []), grouped(own, "phase")
        rows.append({
            "kernel": kernel,
            "cold_ns": _length(own),
            **{f"{phase}_ns": _length(by_phase.get(phase, [])) for phase in COLD_PHASES},
            "basis": weakest(own),
            "first_uses": len(used.get(kernel, [])),
            "candidates": len(mine),
            "tuning_device_ns": sum((c["device_ns"] or 0) + (c["flush_ns"] or 0) for c in mine),
        })  # fmt: skip
    return sorted(rows, key=lambda row: -row["cold_ns"])


def _module_loads(trace: Trace, window: tuple[int, int]) -> int | None:
    """Module-load calls that began in the window; None where the producer records none."""
    start = ints(trace.host, "start_ns")
    called = start[call_classes(trace.host) == LOAD]
    if not len(called) and is_kind(trace.host, "cold", "launch").any():
        called = start[labelled(trace.host, "phase", {"module_load"})]
    elif not len(called):
        return None if "torch" in trace.sources["format"].to_pylist() else 0
    return int(((called >= window[0]) & (called < window[1])).sum())


def _tuning(trace: Trace, window: tuple[int, int]) -> int:
    """Union of tuning executions inside the window, summed over devices, ns."""
    tuned = labelled(trace.device, "purpose", {"tuning"})
    start, end, device = (ints(trace.device, c)[tuned] for c in ("start_ns", "end_ns", "device"))
    start, end = np.clip(start, *window), np.clip(end, *window)
    return sum(covered(start[device == d], end[device == d]) for d in np.unique(device).tolist())
