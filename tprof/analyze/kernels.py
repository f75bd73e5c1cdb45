"""Kernels: how often, how long, who wrote them, who asked for them, and why they ran. One row per (name, purpose)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tprof.align.calls import is_kind
from tprof.align.captures import asked_by
from tprof.align.infer.tokens import device_ops
from tprof.align.ranges import enclosing, looked_up
from tprof.analyze.busy import event_purposes
from tprof.analyze.devices import chosen_devices
from tprof.analyze.executions import Groups, duration_rows, launch_rows
from tprof.analyze.operators import operator_rows
from tprof.analyze.result import Result, source_rows
from tprof.events import PATHS, PURPOSES
from tprof.intervals import NONE
from tprof.model import Trace, codes, first_rows, ints, refine

if TYPE_CHECKING:
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.options import Options
    from tprof.analyze.result import Row


def kernels(attribution: Attribution, options: Options) -> Result:
    """Rank what ran on the devices by summed device time.

    A row's `shapes` counts distinct (grid, block, shared memory, bytes, input shapes where recorded); `origin` is the
    operator or range around most of its launches; percentiles are of single executions, nearest rank. The table `paths`
    says which implementation each operator ran; it leaves out what ran for tuning, warm-up or capture.
    `options.kernels` leaves in what has one of these names, and adds its launch configurations and durations.
    """
    rows = kernel_rows(attribution, options)
    whole = sum(row["total_ns"] for row in rows)
    for row in rows:
        row["of_device_share"] = row["total_ns"] / whole if whole else 0.0
    trace = attribution.trace
    chosen = _in_scope(trace, chosen_devices(attribution, options), options.window)
    paths = operator_rows(trace, working_rows(attribution, options))
    details = {}
    if options.kernels:
        code, names = codes(trace.device, "name")
        named = chosen[np.array([options.about(name) for name in names], bool)[code[chosen]]]
        details = {"launches": launch_rows(trace, named)[: options.top], "durations": duration_rows(trace, named)}
        rows = [row for row in rows if options.about(row["name"])]
        paths = [row for row in paths if options.about(row["kernel"])]
    tables = {"kernels": rows[: options.top], **details, "paths": paths[: options.top]}
    return Result("kernels", tables, dict(tables), trace.notes, source_rows(trace))


def working_rows(attribution: Attribution, options: Options) -> np.ndarray:
    """Rows of `device` that a question is about and that were work: neither tuning, set-up, warm-up nor capture."""
    chosen = _in_scope(attribution.trace, chosen_devices(attribution, options), options.window)
    return chosen[event_purposes(attribution.trace)[chosen] == PURPOSES.index("work")]


def kernel_rows(attribution: Attribution, options: Options) -> list[Row]:
    """Rows of `kernels`, largest total first. An event belongs to the window in which it begins."""
    trace = attribution.trace
    chosen = _in_scope(trace, chosen_devices(attribution, options), options.window)
    name, names = codes(trace.device, "name")
    purpose, purposes = codes(trace.device, "purpose")
    path, paths = codes(trace.device, "path")
    key = refine(name[chosen].astype(np.int64), purpose[chosen])
    duration = (ints(trace.device, "end_ns") - ints(trace.device, "start_ns"))[chosen]
    groups = Groups.of(key, duration)
    origins = _most_common(key, _origin(trace)[chosen], groups.count)
    origin_names = codes(trace.host, "name")[1]
    shapes = _distinct(key, _shape(trace)[chosen], groups.count)
    first = chosen[groups.first]
    rows = [
        {
            "name": names[name[r]],
            "path": paths[path[r]] if path[r] != NONE else PATHS[-1],
            "origin": origin_names[origins[g]] if origins[g] != NONE else None,
            "purpose": purposes[purpose[r]] if purpose[r] != NONE else PURPOSES[0],
            **groups.figures(g),
            "shapes": int(shapes[g]),
        }
        for g, r in enumerate(first.tolist())
    ]
    return sorted(rows, key=lambda row: (-row["total_ns"], row["name"], row["purpose"]))


def _in_scope(trace: Trace, devices: list[int], window: tuple[int, int] | None) -> np.ndarray:
    """Rows of `device` that a question is about."""
    start, device = ints(trace.device, "start_ns"), ints(trace.device, "device")
    chosen = np.isin(device, devices)
    if window:
        chosen &= (start >= window[0]) & (start < window[1])
    return np.flatnonzero(chosen)


def _origin(trace: Trace) -> np.ndarray:
    """Name code of the operator or range that launched each device event, -1 for none; shape (device rows,)."""
    above = enclosing(trace.host, ints(trace.device, "launch"), ~is_kind(trace.host, "python"))
    return looked_up(codes(trace.host, "name")[0], above)


def _shape(trace: Trace) -> np.ndarray:
    """What tells two launches of one kernel apart, as a code per device event."""
    _, op = device_ops(trace)
    shape, _ = codes(trace.host, "shape_key")
    parent, call = ints(trace.host, "parent"), asked_by(trace.device)
    known = looked_up(shape, call)  # by tprof's recorder
    asked = np.where(known == NONE, looked_up(shape, looked_up(parent, call)), known)
    return op.astype(np.int64) * (int(asked.max(initial=0)) + 2) + asked + 1


def _most_common(key: np.ndarray, value: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Most frequent value of each group, shape (groups,)."""
    pair = refine(key, value)
    first, order = first_rows(pair), np.argsort(np.bincount(pair), kind="stable")
    out = np.full(len(count), NONE)
    out[key[first[order]]] = value[first[order]]  # later writes win: the most frequent one stays
    return out


def _distinct(key: np.ndarray, value: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Number of distinct values in each group, shape (groups,)."""
    first = first_rows(refine(key, value))
    return np.bincount(key[first], minlength=len(count))
