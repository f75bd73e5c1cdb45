"""Shapes: the life of every kernel in each of its shapes, how concentrated they are, and which are worth preparing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.analyze.census import Census
from tprof.analyze.result import Result, source_rows
from tprof.analyze.rows import grouped, percentile
from tprof.analyze.shape_life import life
from tprof.analyze.verdicts import concentration, verdict
from tprof.events import COLD_PHASES, Note
from tprof.intervals import NONE, summed

if TYPE_CHECKING:
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.options import Options
    from tprof.analyze.result import Row

SLICES: Final = 12  # equal parts of the window in which calls are counted
LIVES: Final = 100  # keys whose life is told; `Options.kernels` asks for others


def shapes(attribution: Attribution, options: Options) -> Result:
    """Every shape of every compiled kernel: what its first call cost, what the others do, and a verdict.

    Cold time is charged as `charges` says; with what is `uncharged` it sums to the cold time of the window.
    """
    trace = attribution.trace
    census = Census(attribution, options)
    rows = shape_rows(census)
    of_kernel = grouped(rows, "kernel").items()
    spread = [concentration(kernel, [row["calls"] for row in own if row["calls"]]) for kernel, own in of_kernel]
    spread.sort(key=lambda row: (-row["calls"], row["kernel"]))
    groups, uncharged = bucket_rows(rows), [r for r in _uncharged(census) if options.about(r["kernel"])]
    shown = rows[: options.top]
    numbers = [row.pop("number") for row in shown]
    steps = [step for number in numbers[:LIVES] for step in life(census, number, attribution.extent[0])]
    tables = {
        "shapes": shown,
        "buckets": groups,
        "concentration": [_covered(row) for row in spread],
        "uncharged": uncharged,
        "timeline": steps,
    }
    payload = {**tables, "concentration": spread}
    return Result("shapes", tables, payload, (*trace.notes, *_poor_keys(rows)), source_rows(trace))


def _poor_keys(rows: list[Row]) -> list[Note]:
    """A warning where shapes are told apart by grid and block alone."""
    poor = sum(row["key"] == "grid" for row in rows)
    message = "shapes are told apart by grid and block only, and two may share one; record with tprof, or record_shapes"
    return [Note("poor-shape-keys", message, poor)] if poor else []


def shape_rows(census: Census) -> list[Row]:
    """One row per key that was called, or for which something was cold; the most cold time first."""
    calls, charges = census.calls, census.charges
    at = np.flatnonzero(census.charged)
    of_charge = calls.key[charges.call[at]]
    used = np.union1d(calls.key[census.kept], of_charge)
    order = np.flatnonzero(census.kept)
    order = order[np.argsort(calls.key[order], kind="stable")]
    edges = np.searchsorted(calls.key[order], used, side="left"), np.searchsorted(calls.key[order], used, side="right")
    rows = [
        _row(census, number, order[low:high], at[of_charge == number])
        for number, low, high in zip(used.tolist(), *(e.tolist() for e in edges), strict=True)
    ]
    rows = [row for row in rows if row["calls"] or row["cold_ns"]]  # tuning gives a grid of its own to what it tries
    _judge(rows)
    return sorted(
        rows, key=lambda r: (-r["cold_ns"], -(r["device_total_ns"] or 0), -r["calls"], r["kernel"], r["shape"])
    )


def _row(census: Census, number: int, own: np.ndarray, cold: np.ndarray) -> Row:
    """Figures of one key: `own` are its calls in time order, `cold` its charges."""
    calls, charges, key = census.calls, census.charges, census.calls.keys[number]
    work, tuned = own[~calls.tuning[own]], own[calls.tuning[own]]
    spent = summed(charges.phase[cold], charges.end[cold] - charges.start[cold], len(COLD_PHASES))
    return {
        "number": number,
        "kernel": key.kernel,
        "label": census.labels[number],
        "shape": key.shape,
        "bucket": census.buckets[number],
        "grid": ", ".join(calls.grids[number]) or None,
        "first_seen_ns": int(min([*calls.start[own[:1]].tolist(), *charges.start[cold].tolist()])),
        "calls": len(work),
        "misses": int(census.cold[work].sum()),
        "request_misses": int((census.cold[work] & (census.request[work] != NONE)).sum()),
        "cold_ns": int(spent.sum()),
        **{f"{phase}_ns": ns for phase, ns in zip(COLD_PHASES, spent.tolist(), strict=True)},
        **{name: int(count[number]) for name, count in census.uses.items()},
        **_latency(census, work),
        "tuning_calls": len(tuned),
        "tuning_device_ns": _sum_known(calls.device_ns[tuned]),
        "calls_by_slice": _slices(calls.start[work], census.window),
        "key": key.source,
        "basis": "recorded" if key.source == "arguments" and charges.recorded[cold].all() else "inferred",
    }


def _latency(census: Census, work: np.ndarray) -> Row:
    """First call against the warm ones, on the host and on the device."""
    calls, charges = census.calls, census.charges
    wall = calls.wall_ns[work]
    warm = np.sort(wall[~census.cold[work] & (wall != NONE)])
    first = None
    if len(work) and wall[0] != NONE:
        begun = charges.start[charges.call == work[0]]
        first = int(calls.end[work[0]] - min([calls.start[work[0]], *begun]))
    device = calls.device_ns[work]
    known = len(work) and (device != NONE).all()
    later = np.sort(device[1:]) if known else device[:0]
    return {
        "first_call_ns": first,
        "warm_calls": len(warm),
        "warm_p50_ns": percentile(warm, 50),
        "warm_p99_ns": percentile(warm, 99),
        "first_device_ns": int(device[0]) if known else None,
        "device_p50_ns": percentile(later, 50),
        "device_p99_ns": percentile(later, 99),
        "device_total_ns": _sum_known(device),
    }


def _sum_known(values: np.ndarray) -> int | None:
    return int(values.sum()) if (values != NONE).all() else None


def _slices(start: np.ndarray, window: tuple[int, int]) -> list[int]:
    """Calls in each of the equal parts of the window."""
    at = (start - window[0]) * SLICES // max(window[1] - window[0], 1)
    return np.bincount(np.clip(at, 0, SLICES - 1), minlength=SLICES).tolist()


def _judge(rows: list[Row]) -> None:
    """Add share and verdict, which need the kernel's other shapes."""
    for own in grouped(rows, "kernel").values():
        whole = sum(row["calls"] for row in own)
        for row in own:
            row["of_kernel_share"] = row["calls"] / whole if whole else 0.0
            row["verdict"] = verdict(row["calls"], whole, row["cold_ns"], tuned=row["candidates"] > 0)


def bucket_rows(rows: list[Row]) -> list[Row]:
    """Calls, misses and cold time by bucket, most misses first; empty where no bucket is declared."""
    sums = ("calls", "misses", "compiles", "disk_hits", "candidates", "cold_ns", "compile_ns", "autotune_ns")
    within = grouped((row for row in rows if row["bucket"] is not None), "bucket")
    found = [
        {"bucket": bucket, "keys": len(own), **{name: sum(row[name] for row in own) for name in sums}}
        for bucket, own in within.items()
    ]
    for name in ("calls", "misses"):
        whole = sum(group[name] for group in found)
        for group in found:
            group[f"of_{name}_share"] = group[name] / whole if whole else 0.0
    return sorted(found, key=lambda g: (-g["misses"], -g["cold_ns"], g["bucket"]))


def _uncharged(census: Census) -> list[Row]:
    """Cold time that no call can be charged with, by kernel and phase."""
    charges, names = census.charges, census.trace.spans["kernel"]
    found: Counter[tuple[str | None, str]] = Counter()
    for i in np.flatnonzero(charges.call == NONE).tolist():
        kernel, phase = names[int(charges.row[i])].as_py(), COLD_PHASES[charges.phase[i]]
        found[kernel, phase] += int(charges.end[i] - charges.start[i])
    return [{"kernel": kernel, "phase": phase, "total_ns": ns} for (kernel, phase), ns in found.most_common()]


def _covered(row: Row) -> Row:
    """Shares of the most frequent keys as flat columns."""
    return {k: v for k, v in row.items() if k != "covered"} | {f"top{c['k']}_share": c["share"] for c in row["covered"]}
