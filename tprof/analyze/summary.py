"""The whole answer in one page: window, devices, cold start, requests, findings."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tprof.analyze.cold import cold_totals
from tprof.analyze.devices import device_rows
from tprof.analyze.findings import Facts, findings
from tprof.analyze.idle import idle, window_row
from tprof.analyze.kernels import kernel_rows
from tprof.analyze.requests import request_budgets
from tprof.analyze.result import Result, Row, flat, source_rows

if TYPE_CHECKING:
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.options import Options


def summarize(attribution: Attribution, options: Options) -> Result:
    """Where the time of the window went, and what to look at first."""
    trace, window = attribution.trace, options.window or attribution.extent
    devices = device_rows(attribution, options, window)
    totals = cold_totals(attribution, window)
    whole = replace(options, top=None)
    served = request_budgets(attribution, whole)
    wall = window[1] - window[0]
    found = findings(Facts(attribution, window, devices, totals, served, kernel_rows(attribution, whole)))
    parts = {row["device"]: row["phases"] for row in idle(attribution, options).payload["devices"]}
    payload = {"window": window_row(window), "devices": devices, "cold": totals, "requests": served, "findings": found}
    tables = {
        "devices": [flat(row) for row in devices],
        "wall": [r for row in devices for r in _wall(row, parts[row["device"]], wall)],
        "cold": [{k: ", ".join(v) if isinstance(v, list) else v for k, v in totals.items() if not isinstance(v, dict)}],
        "requests": [_flat_request(row) for row in served],
        "findings": found,
    }
    return Result("summary", tables, payload, trace.notes, source_rows(trace))


def _wall(row: Row, idle_phases: list[Row], wall: int) -> list[Row]:
    """Parts of the wall clock by basis, largest first; they sum to the window."""
    rows = [
        {"part": f"{p['where']}.{p['phase']}", "basis": p["basis"], "total_ns": p["total_ns"]} for p in idle_phases
    ] + [
        {"part": f"busy.{purpose}", "basis": row["basis_by_purpose"][purpose], "total_ns": ns}
        for purpose, ns in row["busy_by_purpose"].items()
    ]
    for part, ns in row["wall_by_phase"].items():  # beyond everything that was recorded
        if rest := ns - sum(r["total_ns"] for r in rows if r["part"] == part):
            rows.append({"part": part, "basis": "unattributed", "total_ns": rest})
    rows.sort(key=lambda r: -r["total_ns"])
    return [{"device": row["device"], **r, "of_wall_share": r["total_ns"] / wall if wall else 0.0} for r in rows]


def _flat_request(row: Row) -> Row:
    """The figures of a request that fit on one line."""
    return {
        **{key: row[key] for key in ("name", "wall_ns", "cold_tax_ns")},
        "cold_share": row["cold_tax_ns"] / row["wall_ns"] if row["wall_ns"] else 0.0,
        "cold_exposed_ns": row["cold_exposed_ns"],
        **{f"device_{purpose}_ns": row["device_by_purpose"].get(purpose, 0) for purpose in ("work", "tuning")},
        "mostly": next(iter(row["phases"]), None),
        "basis": row["basis"],
    }
