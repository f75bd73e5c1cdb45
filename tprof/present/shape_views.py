"""What a person sees of shapes, of requests' latency and causes, and of operators; see `views`."""

from __future__ import annotations

from typing import Final

from tprof.present.columns import Column, View

_MISSES: Final = View(
    "Misses by bucket",
    "Miss: a call for which something was compiled, looked up, loaded or tuned. Shares are of all buckets.",
    (
        Column("bucket", "bucket"),
        Column("keys", "shapes"),
        Column("calls", "calls"),
        Column("of_calls_share", "of calls", 1),
        Column("misses", "misses"),
        Column("of_misses_share", "of misses"),
        Column("cold_ns", "cold"),
        Column("compile_ns", "compile", 2, sparse=True),
        Column("autotune_ns", "autotune", 2, sparse=True),
        Column("compiles", "compiled", 3, sparse=True),
        Column("disk_hits", "from disk", 3, sparse=True),
    ),
)

SHAPE_VIEWS: Final[dict[tuple[str, str], View]] = {
    ("shapes", "shapes"): View(
        "Shapes of compiled kernels",
        "First: the first call with all that was cold for it. Then: median launch call of those that were not cold. "
        "Pin: hot and tuned. Warm: hot, compiled only. Generic: rare but costly. Leave: cold for less than 10 ms. "
        "Hot: at least 2 calls, and 1 % of its kernel's calls or 100.",
        (
            Column("kernel", "kernel"),
            Column("label", "shape"),
            Column("verdict", "verdict"),
            Column("calls", "calls"),
            Column("misses", "misses", 3),
            Column("cold_ns", "cold", 2),
            Column("first_call_ns", "first"),
            Column("warm_p50_ns", "then", 1),
            Column("bucket", "bucket", 2, sparse=True),
            Column("device_p50_ns", "device", 3, sparse=True),
            Column("calls_by_slice", "calls over time", 4),
            Column("warm_p99_ns", "then p99", 5),
            Column("device_total_ns", "device total", 6, sparse=True),
            Column("compile_ns", "compile", 7, sparse=True),
            Column("autotune_ns", "autotune", 7, sparse=True),
            Column("key", "key", 8, varied=True),
            Column("basis", "basis", 8),
        ),
    ),
    ("shapes", "buckets"): _MISSES,
    ("shapes", "concentration"): View(
        "How concentrated the calls are",
        "Share of a kernel's calls that its most frequent 1, 2, 5, 10 … shapes make up. Once: shapes that came once.",
        (
            Column("kernel", "kernel"),
            Column("keys", "shapes"),
            Column("calls", "calls"),
            Column("hot_keys", "hot"),
            Column("hot_share", "by hot"),
            Column("once", "once"),
            *(Column(f"top{k}_share", f"top {k}", 1 + i, sparse=True) for i, k in enumerate((1, 2, 5, 10, 20, 50))),
        ),
    ),
    ("shapes", "uncharged"): View(
        "Cold time that no shape can be charged with",
        "Thread time; – is what no single kernel can be charged with. With the shapes' it sums to `tprof cold`'s.",
        (Column("kernel", "kernel"), Column("phase", "phase"), Column("total_ns", "time")),
    ),
    ("shapes", "timeline"): View(
        "Life of each shape",
        "Cold steps before a call are summed by phase, and drawn one after the other; each call follows. At: from the "
        "first event of the trace.",
        (
            Column("kernel", "kernel", 2, varied=True),
            Column("label", "shape"),
            Column("at_ns", "at"),
            Column("step", "step"),
            Column("wall_ns", "took"),
            Column("device_ns", "device", 1, sparse=True),
            Column("stretches", "stretches", 3),
            Column("request", "request", 2, sparse=True),
            Column("basis", "basis", 4),
        ),
    ),
    ("requests", "latency"): View(
        "Latency of requests",
        "Percentiles by nearest rank: each is a request that was measured. Less cold tax: the same requests, the tax "
        "taken off, which is accounting. Warm only: those without any.",
        (
            Column("name", "requests"),
            Column("of", "which"),
            Column("n", "n"),
            Column("p50_ns", "p50"),
            Column("p95_ns", "p95", 1),
            Column("p99_ns", "p99"),
            Column("max_ns", "max", 2),
        ),
    ),
    ("requests", "first_steady"): View(
        "First request against the steady state",
        "Steady: median of the later requests without cold tax. Token: time to first token, where a range or mark "
        "*first_token* says so. Device: work of a steady request.",
        (
            Column("by", "by", 5),
            Column("name", "requests"),
            Column("n", "n"),
            Column("cold_requests", "cold"),
            Column("first_ns", "first"),
            Column("steady_ns", "steady"),
            Column("first_to_steady_ratio", "ratio"),
            Column("first_token_first_ns", "first token", 1, sparse=True),
            Column("first_token_steady_ns", "steady token", 1, sparse=True),
            Column("reference_ns", "reference", 1, sparse=True),
            Column("to_reference_ratio", "to it", 1, sparse=True),
            Column("steady_work_ns", "device", 3, sparse=True),
        ),
    ),
    ("requests", "causes"): View(
        "Cold requests and their causes",
        "Mostly: the cold phase that took most. Kernel and shape: what most cold thread time was spent on.",
        (
            Column("name", "request"),
            Column("id", "id", 2, sparse=True),
            Column("at_ns", "at", 5),
            Column("cold_tax_ns", "cold tax"),
            Column("cold_share", "of wall", 3),
            Column("cause", "mostly"),
            Column("compile_ns", "compile", 1, sparse=True),
            Column("autotune_ns", "autotune", 1, sparse=True),
            Column("kernel", "kernel"),
            Column("label", "shape"),
            Column("bucket", "bucket", 2, sparse=True),
            Column("other_kernels", "others", 4, sparse=True),
            Column("misses", "misses", 3),
            Column("basis", "basis", 6),
        ),
    ),
    ("requests", "buckets"): _MISSES,
    ("requests", "job"): View(
        "Cold start of the whole job",
        "Exposed: something was cold and no device worked; the share is of the job. Amortised: from so many warm "
        "requests on the exposed part is below 1 %. What preparing would save takes a recording that is prepared.",
        (
            Column("wall_ns", "job"),
            Column("cold_ns", "cold"),
            Column("of_job_share", "cold share", 1),
            Column("cold_exposed_ns", "exposed"),
            Column("exposed_share", "exposed share"),
            Column("requests", "requests", 1),
            Column("steady_ns", "steady", 1),
            Column("amortised_after", "amortised"),
            Column("verdict", "verdict"),
        ),
    ),
    ("kernels", "paths"): View(
        "What each operator ran",
        "Device work by operator and input shapes; the share is of all work. Whose: the library, or the module of a "
        "Triton kernel. Inferred: judged by the kernel's name.",
        (
            Column("operator", "operator"),
            Column("label", "inputs", sparse=True),
            Column("path", "path"),
            Column("implementation", "whose", 2, sparse=True),
            Column("calls", "calls", 1),
            Column("total_ns", "total"),
            Column("of_work_share", "share"),
            Column("kernel", "kernel", 3),
            Column("kernels", "kernels", 4),
            Column("basis", "basis", 5),
        ),
    ),
}
