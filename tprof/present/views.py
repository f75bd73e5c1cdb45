"""What a person sees of each table: its heading, what its figures are measured against, and its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tprof.events import PHASES, PURPOSES
from tprof.present.advice_views import ACCEPT_VIEWS, ADVICE_VIEWS
from tprof.present.autotune_views import AUTOTUNE_VIEWS
from tprof.present.batch_views import BATCH_VIEWS
from tprof.present.cold_views import COLD_VIEWS, PHASE_COLUMNS
from tprof.present.columns import Column, View
from tprof.present.compare_views import COMPARE_VIEWS
from tprof.present.data_views import DATA_VIEWS
from tprof.present.plan_views import PLAN_VIEWS
from tprof.present.shape_views import SHAPE_VIEWS
from tprof.present.words import label

if TYPE_CHECKING:
    from tprof.analyze import Result

_CHECKS = (
    Column("item", "what"),
    Column("state", ""),
    Column("value", "found"),
    Column("advice", "note", 1, sparse=True),
)

VIEWS: Final[dict[tuple[str, str], View]] = {
    **ACCEPT_VIEWS,
    **ADVICE_VIEWS,
    **AUTOTUNE_VIEWS,
    **BATCH_VIEWS,
    **COLD_VIEWS,
    **SHAPE_VIEWS,
    **COMPARE_VIEWS,
    **PLAN_VIEWS,
    **DATA_VIEWS,
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
            *PHASE_COLUMNS,
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
            Column("of", "of the"),
            Column("why", "why", 1),
            Column("fix", "what to do", 2),
            Column("basis", "basis", 1),
            Column("window", "--window", 3),
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
    ("idle", "lengths"): View(
        "How long the gaps are",
        "Few long gaps have one cause each; many short ones are a habit. The share is of the time of all gaps.",
        (
            Column("device", "device", 2, varied=True),
            Column("from_ns", "from"),
            Column("below_ns", "below"),
            Column("gaps", "gaps"),
            Column("total_ns", "time"),
            Column("of_gaps_share", "share"),
            Column("phase", "mostly"),
            Column("inferred_ns", "inferred", 1, sparse=True),
            *(Column(f"{phase}_ns", label(phase), 9 + i, sparse=True) for i, phase in enumerate(PHASES)),
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
    ("kernels", "launches"): View(
        "Launch configurations",
        "Grid in blocks, block in threads; registers a thread, shared memory a block. Times are of single executions.",
        (
            Column("name", "kernel", 1, varied=True),
            Column("purpose", "purpose"),
            Column("grid", "grid"),
            Column("block", "block"),
            Column("registers", "registers", 1, sparse=True),
            Column("shared_bytes", "shared", 1, sparse=True),
            Column("calls", "calls"),
            Column("total_ns", "total"),
            Column("median_ns", "median"),
            Column("p99_ns", "p99", 2),
            Column("min_ns", "min", 3),
            Column("max_ns", "max", 3),
            Column("device", "device", 2, varied=True),
        ),
    ),
    ("kernels", "durations"): View(
        "How long executions take",
        "Executions by duration; the ranges grow by a constant factor.",
        (
            Column("from_ns", "from"),
            Column("below_ns", "below"),
            Column("calls", "calls"),
            Column("total_ns", "total"),
            *(Column(purpose, f"for {label(purpose)}", 1 + i, sparse=True) for i, purpose in enumerate(PURPOSES)),
        ),
        whole=True,
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
            *PHASE_COLUMNS,
            Column("launch_ns", "launch", 4, sparse=True),
            Column("sync_ns", "sync", 4, sparse=True),
            Column("memory_ns", "memory", 4, sparse=True),
            Column("collective_ns", "collective", 4, sparse=True),
            Column("framework_ns", "framework", 4, sparse=True),
            Column("host_ns", "host", 3, sparse=True),
            Column("unattributed_ns", "unattributed", 4, sparse=True),
            Column("device_work_ns", "device work", 2, sparse=True),
            Column("device_tuning_ns", "device tuning", 3, sparse=True),
            Column("cause", "cold by", 4, sparse=True),
            Column("source", "source", 3, varied=True),
            Column("basis", "basis", 3),
        ),
    ),
    ("cache", "entries"): View(
        "Kept traces",
        "Opened instead of the source as long as it has not changed. The least recently used go first.",
        (
            Column("source", "source"),
            Column("kept_bytes", "kept"),
            Column("used_utc", "last used (UTC)", 1),
        ),
    ),
    ("cache", "total"): View(
        "In all",
        "TPROF_CACHE_DIR names the folder, TPROF_CACHE_SIZE the limit.",
        (Column("folder", "folder"), Column("kept_bytes", "kept"), Column("limit_bytes", "limit")),
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
