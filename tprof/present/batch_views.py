"""What a person sees of a batch."""

from __future__ import annotations

from typing import Final

from tprof.present.columns import Column, View

BATCH_VIEWS: Final[dict[tuple[str, str], View]] = {
    ("batch", "sources"): View(
        "Sources",
        "Busy and idle: summed over devices. Cold tax: summed over requests. `trace` names the source in every table.",
        (
            Column("trace", "trace"),
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
    ("batch", "findings"): View(
        "Between the sources",
        "Processes that ran at one time are compared. Costs overlap and do not add up.",
        (
            Column("title", "finding"),
            Column("cost_ns", "cost"),
            Column("share", "share"),
            Column("of", "of"),
            Column("why", "why", 1),
            Column("fix", "what to do", 2),
            Column("basis", "basis", 1),
            Column("trace", "trace", 3, sparse=True),
        ),
    ),
    ("batch", "ranks"): View(
        "Processes compared",
        "Late: from the first rank's begin to its own of the collectives that it began last; cold: the part of it in "
        "which it was cold. Work, collectives: summed device time.",
        (
            Column("name", "process"),
            Column("trace", "trace", 2),
            Column("job", "job", 3, varied=True),
            Column("wall_ns", "wall"),
            Column("cold_ns", "cold"),
            Column("work_ns", "work"),
            Column("collective_ns", "collectives", 1),
            Column("last_in", "last in", 1, sparse=True),
            Column("collectives", "of", 1, sparse=True),
            Column("late_ns", "late", sparse=True),
            Column("late_cold_ns", "late, cold", sparse=True),
        ),
    ),
    ("batch", "duplicates"): View(
        "Kernels compiled by several processes",
        "Again: all compiles but the longest.",
        (
            Column("kernel", "kernel"),
            Column("processes", "processes"),
            Column("compiles", "compiles", 1),
            Column("total_ns", "in all"),
            Column("repeated_ns", "again"),
            Column("ranks", "by", 1),
            Column("job", "job", 3, varied=True),
            Column("basis", "basis", 1),
        ),
    ),
    ("batch", "shapes"): View(
        "Shapes over all sources",
        "The most cold time first; cold: thread time charged to the shape.",
        (
            Column("kernel", "kernel"),
            Column("shape", "shape"),
            Column("bucket", "bucket", 1, sparse=True),
            Column("sources", "sources"),
            Column("calls", "calls"),
            Column("misses", "misses"),
            Column("request_misses", "in requests", 1),
            Column("candidates", "candidates", 2),
            Column("cold_ns", "cold"),
            Column("compile_ns", "compile", 2),
            Column("autotune_ns", "autotune", 2),
        ),
    ),
    ("batch", "buckets"): View(
        "Buckets over all sources",
        "Keys: shapes of each source, summed.",
        (
            Column("bucket", "bucket"),
            Column("sources", "sources"),
            Column("keys", "keys", 1),
            Column("calls", "calls"),
            Column("misses", "misses"),
            Column("candidates", "candidates", 1),
            Column("cold_ns", "cold"),
            Column("compile_ns", "compile", 1),
            Column("autotune_ns", "autotune", 1),
        ),
    ),
    ("batch", "requests"): View(
        "Requests that paid most for cold start, then the longest",
        "Cold tax: the part of a request's wall time in cold phases.",
        (
            Column("name", "request"),
            Column("trace", "trace"),
            Column("wall_ns", "wall"),
            Column("cold_tax_ns", "cold tax"),
            Column("cold_exposed_ns", "exposed", 1),
            Column("cause", "cold by", 1, sparse=True),
            Column("basis", "basis", 1),
        ),
    ),
}
