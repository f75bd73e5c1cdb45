"""What a person sees of each table: its heading, what its figures are measured against, and its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tprof.present.columns import Column, View

if TYPE_CHECKING:
    from tprof.analyze import Result

_PHASES = (
    Column("compile_ns", "compile", 1, sparse=True),
    Column("cache_ns", "cache", 3, sparse=True),
    Column("launcher_build_ns", "launcher", 2, sparse=True),
    Column("module_load_ns", "load", 3, sparse=True),
    Column("autotune_ns", "autotune", 1, sparse=True),
    Column("graph_compile_ns", "graph", 2, sparse=True),
    Column("graph_capture_ns", "capture", 3, sparse=True),
    Column("init_ns", "init", 4, sparse=True),
)

_CHECKS = (
    Column("item", "what"),
    Column("state", ""),
    Column("value", "found"),
    Column("advice", "note", 1, sparse=True),
)

VIEWS: Final[dict[tuple[str, str], View]] = {
    ("summary", "devices"): View(
        "Devices",
        "Span is from the first to the last device event; idle = span - busy. Lead and tail lie before and after it.",
        (
            Column("device", "device"),
            Column("name", "model", 2),
            Column("span_ns", "span"),
            Column("busy_ns", "busy"),
            Column("idle_ns", "idle"),
            Column("lead_ns", "lead"),
            Column("tail_ns", "tail", 1),
            Column("sum_ns", "summed", 3),
            Column("events", "events", 1),
            Column("overlaps", "overlaps", 4, sparse=True),
            Column("unlinked", "unlinked", 2, sparse=True),
        ),
    ),
    ("summary", "wall"): View(
        "Wall clock of each device",
        "Every instant of the window counts once; the parts of a device sum to 100 %.",
        (
            Column("device", "device"),
            Column("part", "part"),
            Column("total_ns", "time"),
            Column("of_wall_share", "of wall"),
            Column("basis", "basis"),
        ),
    ),
    ("summary", "cold"): View(
        "Cold start in all",
        "Thread time inside the window: two threads that compile at once count twice.",
        (
            Column("compiles", "compiles"),
            Column("disk_hits", "disk hits", 2),
            Column("module_loads", "module loads", 2),
            Column("candidates", "candidates"),
            *_PHASES,
            Column("tuning_device_ns", "device tuning", 1),
            Column("basis", "basis", 1),
        ),
    ),
    ("summary", "requests"): View(
        "Requests",
        "Cold tax: the part of a request's wall time in cold phases. Work, tuning: device time of what it launched.",
        (
            Column("name", "request"),
            Column("wall_ns", "wall"),
            Column("cold_tax_ns", "cold tax"),
            Column("cold_share", "cold"),
            Column("mostly", "mostly"),
            Column("device_work_ns", "work", 2),
            Column("device_tuning_ns", "tuning", 1),
            Column("cold_exposed_ns", "exposed", 4),
            Column("basis", "basis", 3),
        ),
    ),
    ("summary", "findings"): View(
        "What to look at first",
        "Largest cost first; each share names its whole. Costs overlap and do not add up.",
        (
            Column("title", "finding"),
            Column("cost_ns", "cost"),
            Column("share", "share"),
            Column("why", "why", 1),
            Column("fix", "what to do", 2),
            Column("basis", "basis", 1),
        ),
    ),
    ("idle", "phases"): View(
        "Why the device was idle",
        "Lead: before the first device event. Idle: between the first and the last. Tail: after the last.",
        (
            Column("device", "device", 2, varied=True),
            Column("where", "where"),
            Column("phase", "phase"),
            Column("total_ns", "time"),
            Column("of_where_share", "of it"),
            Column("of_wall_share", "of wall"),
            Column("gaps", "gaps", 1),
            Column("basis", "basis"),
        ),
    ),
    ("idle", "gaps"): View(
        "Longest gaps",
        "At: from the first event of the trace, as --window counts. The phase is the largest part of the gap.",
        (
            Column("at_ns", "at"),
            Column("gap_ns", "gap"),
            Column("where", "where", 2),
            Column("phase", "mostly"),
            Column("ended_by", "ended by"),
            Column("thread", "thread", 3, varied=True),
            Column("device", "device", 2, varied=True),
            Column("basis", "basis", 1),
        ),
    ),
    ("cold start", "phases"): View(
        "Cold start by phase",
        "Thread time inside the window; phases exclude each other on a thread.",
        (
            Column("phase", "phase"),
            Column("total_ns", "time"),
            Column("of_window_share", "of window"),
            Column("spans", "stretches", 1),
            Column("includes", "includes", 2, sparse=True),
            Column("basis", "basis"),
        ),
    ),
    ("cold start", "kernels"): View(
        "Cold start by kernel",
        "Time spent on behalf of a kernel; – is what no single kernel can be charged with.",
        (
            Column("kernel", "kernel"),
            Column("cold_ns", "cold"),
            *_PHASES,
            Column("first_uses", "first uses", 3, sparse=True),
            Column("candidates", "candidates", 2, sparse=True),
            Column("tuning_device_ns", "device tuning", 3, sparse=True),
            Column("basis", "basis", 3),
        ),
    ),
    ("cold start", "candidates"): View(
        "Candidates timed by autotuning",
        "Wall: from the first to the last launch of its benchmark. Kernel and flush: device time, only tuning.",
        (
            Column("at_ns", "at"),
            Column("kernel", "kernel"),
            Column("config", "configuration", 1, sparse=True),
            Column("wall_ns", "wall"),
            Column("launches", "launches", 1),
            Column("device_ns", "kernel time"),
            Column("flush_ns", "flush", 1),
            Column("repetitions", "timed", 2, sparse=True),
            Column("median_ns", "measured", 1, sparse=True),
            Column("winner", "chosen", 1, sparse=True),
            Column("error", "failed because", 2, sparse=True),
            Column("basis", "basis", 3),
        ),
    ),
    ("cold start", "specializations"): View(
        "Compiled variants",
        "Why new: what differs from the most similar earlier variant of the same function.",
        (
            Column("at_ns", "at"),
            Column("kernel", "kernel"),
            Column("why", "why new"),
            Column("cache_hit", "from disk", 1, sparse=True),
            Column("registers", "registers", 3, sparse=True),
            Column("spills", "spills", 3, sparse=True),
            Column("binary_bytes", "binary", 4, sparse=True),
            Column("source", "source", 5),
        ),
    ),
    ("cold start", "first_uses"): View(
        "First use of each compiled kernel",
        "From the end of what the thread did before to the kernel's first launch.",
        (
            Column("at_ns", "at"),
            Column("kernel", "kernel"),
            Column("wall_ns", "wall"),
            Column("cache_hit", "from disk", 2, sparse=True),
            *_PHASES[:4],
            Column("loads", "loads", 3, sparse=True),
            Column("basis", "basis", 3),
        ),
    ),
    ("kernels", "kernels"): View(
        "Device time by kernel",
        "Summed over executions; the share is of all device time. Tuning: benchmark repetitions of an autotuner.",
        (
            Column("name", "kernel"),
            Column("purpose", "purpose"),
            Column("path", "path", 1),
            Column("calls", "calls"),
            Column("total_ns", "total"),
            Column("of_device_share", "share"),
            Column("median_ns", "median", 1),
            Column("p99_ns", "p99", 3),
            Column("max_ns", "max", 2),
            Column("min_ns", "min", 4),
            Column("shapes", "shapes", 4),
            Column("origin", "asked by", 5),
        ),
    ),
    ("requests", "requests"): View(
        "Requests",
        "All phases sum to the wall time. Cold tax: the part in cold phases, plus waiting while the device only tuned.",
        (
            Column("name", "request"),
            Column("at_ns", "at", 4),
            Column("wall_ns", "wall"),
            Column("cold_tax_ns", "cold tax"),
            Column("cold_exposed_ns", "exposed", 3),
            *_PHASES,
            Column("launch_ns", "launch", 4, sparse=True),
            Column("sync_ns", "sync", 4, sparse=True),
            Column("memory_ns", "memory", 4, sparse=True),
            Column("collective_ns", "collective", 4, sparse=True),
            Column("framework_ns", "framework", 4, sparse=True),
            Column("host_ns", "host", 3, sparse=True),
            Column("unattributed_ns", "unattributed", 4, sparse=True),
            Column("device_work_ns", "device work", 2),
            Column("device_tuning_ns", "device tuning", 3, sparse=True),
            Column("basis", "basis", 3),
        ),
    ),
    ("batch", "sources"): View(
        "Sources",
        "Busy and idle: summed over devices. Cold tax: summed over requests. Tables of each source lie in its folder.",
        (
            Column("folder", "source"),
            Column("wall_ns", "window"),
            Column("devices", "devices", 2),
            Column("busy_ns", "busy"),
            Column("idle_ns", "idle"),
            Column("cold_ns", "cold tax"),
            Column("requests", "requests", 1),
            Column("cold_requests", "cold ones", 1),
            Column("events", "events", 2),
            Column("warnings", "warnings", 2),
        ),
    ),
    ("doctor", "checks"): View(
        "This installation",
        "",
        _CHECKS,
        whole=True,
    ),
    ("doctor", "recording"): View(
        "Recording on this machine",
        "",
        _CHECKS,
        whole=True,
    ),
    ("warnings", "warnings"): View(
        "Warnings",
        "",
        (Column("code", "code"), Column("message", "what"), Column("count", "rows"), Column("source", "source")),
    ),
}


def view(result: Result, table: str) -> View:
    """How to show a table of a result; one that is not known shows all its columns."""
    if (known := VIEWS.get((result.title, table))) is not None:
        return known
    keys = dict.fromkeys(k for row in result.tables[table] for k in row)
    return View(table.replace("_", " "), "", tuple(Column(k, k.removesuffix("_ns").replace("_", " ")) for k in keys))
