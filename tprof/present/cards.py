"""The few figures that a page begins with, each with its whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tprof.analyze.result import weakest
from tprof.present import names, units, words

if TYPE_CHECKING:
    from tprof.analyze import Result


@dataclass(frozen=True)
class Card:
    """One figure: what it is, its value, what it is measured against, how it is known."""

    label: str
    value: str
    note: str
    basis: str = ""
    cold: bool = False


def cards(summary: Result) -> list[Card]:
    """Cards of a summary; those that the trace cannot fill are left out."""
    payload = summary.payload
    return [*_request(payload), *_cold(payload), *_device(payload)]


def cold_shapes(shapes: Result) -> list[Card]:
    """How many shapes a request had to wait for; nothing where no compiled kernel was seen."""
    rows = shapes.tables["shapes"]
    if not rows:
        return []
    cold = [row for row in rows if row["request_misses"]]
    spent = units.duration(sum(row["cold_ns"] for row in cold))
    said = f"a request waited for them: {spent}"
    return [Card("Cold shapes", f"{len(cold)} of {len(rows)}", said, weakest(rows), cold=True)]


def batch_cards(totals: dict[str, Any]) -> list[Card]:
    """Cards of a batch: how much of it there is, and how much of that was idle or cold."""
    read = totals["sources"] + totals["failed"]
    failed = f"{totals['failed']} could not be analysed" if totals["failed"] else "all could be analysed"
    on_device = totals["busy_ns"] + totals["idle_ns"]
    wall = f"summed over requests; all recordings together are {units.duration(totals['wall_ns'])}"
    return [
        Card("Recordings", f"{totals['sources']} of {read}", failed),
        Card("Processes compared", units.count(totals["processes"]), f"jobs that they are of: {totals['jobs']}"),
        Card("Devices idle", units.rate(totals["idle_ns"], on_device), f"of their spans, {units.duration(on_device)}"),
        Card("Cold tax", units.duration(totals["cold_ns"]), wall, cold=True),
        Card(
            "Cold requests",
            f"{totals['cold_requests']} of {units.count(totals['requests'])}",
            "spent over half of their wall time in cold start",
        ),
    ]


def _request(payload: dict[str, Any]) -> list[Card]:
    requests = payload["requests"]
    if not requests:
        return []
    first, cold = requests[0], sum(f["count"] for f in payload["findings"] if f["code"] == "cold-request")
    tax = f"{units.rate(first['cold_tax_ns'], first['wall_ns'])} of its wall time"
    return [
        Card("First request", units.duration(first["wall_ns"]), names.short(first["name"], 40)),
        Card("Cold tax of it", units.duration(first["cold_tax_ns"]), tax, first["basis"], cold=True),
        Card("Cold requests", f"{cold} of {len(requests)}", "spent over half of their wall time in cold start"),
    ]


def _cold(payload: dict[str, Any]) -> list[Card]:
    cold, wall = payload["cold"], payload["window"]["wall_ns"]
    or_load = bool(cold["compile_includes"])
    what = "first uses" if or_load else "compiles"
    compiled = f"{units.count(cold['compiles'])} {what}, {units.rate(cold['compile_ns'], wall)} of window"
    tuned = f"{units.count(cold['candidates'])} candidates, {units.rate(cold['autotune_ns'], wall)} of window"
    basis = cold["basis_by_phase"]
    label = words.label("compile", or_load=or_load).capitalize()
    return [
        Card(label, units.duration(cold["compile_ns"]), compiled, basis.get("compile", ""), cold=True),
        Card("Autotuning", units.duration(cold["autotune_ns"]), tuned, basis.get("autotune", ""), cold=True),
    ]


def _device(payload: dict[str, Any]) -> list[Card]:
    found = []
    for row in payload["devices"][:4]:
        name = names.clean(row["device"])
        of = f", device {name}" if len(payload["devices"]) > 1 else ""
        work, busy, span = row["busy_by_purpose"].get("work", 0), row["busy_ns"], row["span_ns"]
        unknown = sum(ns for part, ns in row["wall_by_phase"].items() if part.endswith("unattributed"))
        share, basis = (
            f"{units.rate(work, busy)} of {units.duration(busy)} busy",
            row["basis_by_purpose"].get("work", ""),
        )
        missing = units.rate(unknown, payload["window"]["wall_ns"])
        found += [
            Card(f"Device {name} idle", units.rate(row["idle_ns"], span), f"of its span, {units.duration(span)}"),
            Card(f"Work while busy{of}", units.duration(work), share, basis),
            Card(f"Unattributed{of}", missing, "of the window: the trace does not say"),
        ]
    return found
