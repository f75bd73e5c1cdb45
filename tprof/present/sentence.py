"""The answer in words: what a summary says, in one or two sentences, with every figure's whole."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from tprof.events import COLD_PHASES
from tprof.present import names, units, words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tprof.analyze import Result

Row = dict[str, Any]


def answer(summary: Result) -> str:
    """Why the first request was slow and why the device was idle, as far as the summary knows."""
    payload = summary.payload
    or_load = bool(payload["cold"]["compile_includes"])
    parts = [_requests(payload, or_load=or_load), *(_device(row, or_load=or_load) for row in payload["devices"][:2])]
    if not payload["devices"]:
        parts.append("No device work was recorded, so nothing can be said about the GPU.")
    return " ".join(p for p in parts if p)


def _requests(payload: Row, *, or_load: bool) -> str:
    requests = payload["requests"]
    if not requests:
        return ""
    cold = sum(f["count"] for f in payload["findings"] if f["code"] == "cold-request")
    first = requests[0]
    text = f"The first request ({names.short(first['name'], 40)}) took {units.duration(first['wall_ns'])}"
    if first["cold_tax_ns"]:
        mostly = _largest({p: ns for p, ns in first["phases"].items() if p in COLD_PHASES}, 3, or_load=or_load)
        text += f", {units.rate(first['cold_tax_ns'], first['wall_ns'])} of it cold start ({mostly})"
    return f"{text}. {cold} of {len(requests)} requests spent most of their time in cold start."


def _device(row: Row, *, or_load: bool) -> str:
    if not row["idle_ns"]:
        return f"Device {row['device']} was never idle in its span of {units.duration(row['span_ns'])}."
    why = _largest(row["idle_by_phase"], 2, or_load=or_load)
    return (
        f"Device {row['device']} was idle for {units.rate(row['idle_ns'], row['span_ns'])} of its span of "
        f"{units.duration(row['span_ns'])}, mostly because of {why}."
    )


def _largest(phases: Mapping[str, int], top: int, *, or_load: bool) -> str:
    """`compile 3.99 s, graph compile 2.32 s`, largest first as the result orders them."""
    return ", ".join(f"{words.label(p, or_load=or_load)} {units.duration(ns)}" for p, ns in list(phases.items())[:top])


def finding_cost(finding: Row) -> str:
    """`3.06 s, 95.9 % of the window`; of a finding that cannot be judged, that nothing is known."""
    if not finding["cost_ns"]:
        return "no cost is known"
    return f"{units.duration(finding['cost_ns'])}, {units.share(finding['share'])} of the {finding['of']}"


def source_line(source: Row) -> str:
    """`trace.json.gz · torch.profiler 1 · 42,789 events`."""
    producer = names.clean(source["producer"] or words.PRODUCER.get(source["format"], source["format"]))
    version = f" {names.clean(source['version'])}" if source["version"] else ""
    parts = [
        names.clean(PurePath(source["path"]).name),
        producer + version,
        f"{units.count(source['rows_read'])} events",
    ]
    if source["rows_dropped"]:
        parts.append(f"{units.count(source['rows_dropped'])} rows lost")
    return " · ".join(parts)


def device_line(row: Row) -> str:
    """`Device 0 · NVIDIA H200 · busy 182 ms · idle 24.2 s · lead 680 ms · tail 43.5 us`."""
    name = [names.clean(row["name"])] if row["name"] else []
    figures = [f"{key} {units.duration(row[f'{key}_ns'])}" for key in ("busy", "idle", "lead", "tail")]
    return " · ".join([f"Device {names.clean(row['device'])}", *name, *figures])


def cold_line(cold: Row) -> str:
    """Counts and times of the cold start, as far as there are any."""
    or_load = bool(cold["compile_includes"])
    counted = [
        (cold["compiles"], "first uses compiled or loaded" if or_load else "compiles"),
        (cold["disk_hits"], "found on disk"),
        (cold["module_loads"], "module loads"),
        (cold["candidates"], "candidates timed"),
    ]
    counts = [f"{units.count(n)} {what}" for n, what in counted if n]
    times = [f"{words.label(p, or_load=or_load)} {units.duration(ns)}" for p in COLD_PHASES if (ns := cold[f"{p}_ns"])]
    if not counts and not times:
        return "Nothing was compiled, loaded or tuned in this window, as far as the trace tells."
    return ", ".join(counts + times) + f" ({cold['basis']})"
