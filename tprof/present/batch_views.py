"""What a person sees of a batch; see `columns.table`."""

from __future__ import annotations

from typing import Final

from tprof.present.columns import View, table

BATCH_VIEWS: Final[dict[tuple[str, str], View]] = {
    ("batch", "sources"): table(
        "Sources",
        "trace | wall_ns: window | devices 2 | busy_ns | idle_ns | cold_ns: cold tax | requests 1 | "
        "cold_requests 1: cold ones | events 2 | warnings 2",
        "Busy and idle: summed over devices. Cold tax: summed over requests. The trace names a source in every table.",
    ),
    ("batch", "findings"): table(
        "Between the sources",
        "title: finding | cost_ns | share | of | why 1 | fix 2: what to do | basis 1 | trace 3?",
        "Processes that ran at one time are compared. Costs overlap and do not add up.",
    ),
    ("batch", "failed"): table(
        "Sources that could not be analysed", "source | message: why", "They are tried again when the batch runs again."
    ),
    ("batch", "ranks"): table(
        "Processes compared",
        "name: process | trace 2 | job 3* | wall_ns | cold_ns | work_ns | collective_ns 1: collectives | "
        "last_in 1? | collectives 1?: of | late_ns ? | late_cold_ns ?: late, cold",
        "Late: from the first rank's begin to its own of the collectives that it began last; cold: the part of it "
        "in which it was cold. Work, collectives: summed device time.",
    ),
    ("batch", "duplicates"): table(
        "Kernels compiled by several processes",
        "kernel | processes | compiles 1 | total_ns: in all | repeated_ns: again | ranks 1: by | job 3* | basis 1",
        "Again: all compiles but the longest.",
    ),
    ("batch", "shapes"): table(
        "Shapes over all sources",
        "kernel | shape | bucket 1? | sources | calls | misses | request_misses 1: in requests | candidates 2 | "
        "cold_ns | compile_ns 2 | autotune_ns 2",
        "The most cold time first; cold: thread time charged to the shape.",
    ),
    ("batch", "buckets"): table(
        "Buckets over all sources",
        "bucket | sources | keys 1 | calls | misses | candidates 1 | cold_ns | compile_ns 1 | autotune_ns 1",
        "Keys: shapes of each source, summed.",
    ),
    ("batch", "requests"): table(
        "Requests that paid most for cold start, then the longest",
        "name: request | trace | wall_ns | cold_tax_ns | cold_exposed_ns 1: exposed | cause 1?: cold by | basis 1",
        "Cold tax: the part of a request's wall time in cold phases.",
    ),
}
