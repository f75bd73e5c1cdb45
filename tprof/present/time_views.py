"""What a person sees of the window, of idle time, kernels, requests and shapes; see `columns.table`."""

from __future__ import annotations

from typing import Final

from tprof.events import PHASES, PURPOSES
from tprof.present.cold_views import COLD
from tprof.present.columns import View, table
from tprof.present.words import label

_EVERY_PHASE: Final = " | ".join(f"{phase}_ns {9 + i}?: {label(phase)}" for i, phase in enumerate(PHASES))
_FOR_PURPOSE: Final = " | ".join(f"{word} {1 + i}?: for {label(word)}" for i, word in enumerate(PURPOSES))
_TOPS: Final = " | ".join(f"top{k}_share {1 + i}?: top {k}" for i, k in enumerate((1, 2, 5, 10, 20, 50)))
_MISSES: Final = table(
    "Misses by bucket",
    "bucket | keys: shapes | calls | of_calls_share 1 | misses | of_misses_share | cold_ns | compile_ns 2? | "
    "autotune_ns 2? | compiles 3?: compiled | disk_hits 3?: from disk",
    "Miss: a call for which something was compiled, looked up, loaded or tuned. Shares are of all buckets.",
)

TIME_VIEWS: Final[dict[tuple[str, str], View]] = {
    ("shapes", "shapes"): table(
        "Shapes of compiled kernels",
        "kernel | label: shape | verdict | calls | misses 3 | cold_ns 2 | first_call_ns: first | "
        "warm_p50_ns 1: then | bucket 2? | device_p50_ns 3?: device | calls_by_slice 4: calls over time | "
        "warm_p99_ns 5: then p99 | device_total_ns 6? | compile_ns 7? | autotune_ns 7? | key 8* | basis 8",
        "First: the first call with all that was cold for it. Then: median launch call of those that were not cold. "
        "Pin: hot and tuned. Warm: hot, compiled only. Generic: rare but costly. Leave: cold for less than 10 ms. "
        "Hot: at least 2 calls, and 1 % of its kernel's calls or 100.",
    ),
    ("shapes", "buckets"): _MISSES,
    ("requests", "buckets"): _MISSES,
    ("shapes", "concentration"): table(
        "How concentrated the calls are",
        f"kernel | keys: shapes | calls | hot_keys: hot | hot_share: by hot | once | {_TOPS}",
        "Share of a kernel's calls that its most frequent 1, 2, 5, 10 … shapes make up. Once: shapes that came once.",
    ),
    ("shapes", "uncharged"): table(
        "Cold time that no shape can be charged with",
        "kernel | phase | total_ns: time",
        "Thread time; – is what no single kernel can be charged with. With the shapes' it sums to `tprof cold`'s.",
    ),
    ("shapes", "timeline"): table(
        "Life of each shape",
        "kernel 2* | label: shape | at_ns | step | wall_ns: took | device_ns 1? | stretches 3 | request 2? | basis 4",
        "Cold steps before a call are summed by phase, and drawn one after the other; each call follows. At: from "
        "the first event of the trace.",
    ),
    ("requests", "latency"): table(
        "Latency of requests",
        "name: requests | of: which | n | p50_ns | p95_ns 1 | p99_ns | max_ns 2",
        "Percentiles by nearest rank: each is a request that was measured. Less cold tax: the same requests, the "
        "tax taken off, which is accounting. Warm only: those without any.",
    ),
    ("requests", "first_steady"): table(
        "First request against the steady state",
        "by 5 | name: requests | n | cold_requests: cold | first_ns | steady_ns | first_to_steady_ratio: ratio | "
        "first_token_first_ns 1?: first token | first_token_steady_ns 1?: steady token | reference_ns 1? | "
        "to_reference_ratio 1?: to it | steady_work_ns 3?: device",
        "Steady: median of the later requests without cold tax. Token: time to first token, where a range or mark "
        "*first_token* says so. Device: work of a steady request.",
    ),
    ("requests", "causes"): table(
        "Cold requests and their causes",
        "name: request | id 2? | at_ns 5 | cold_tax_ns | cold_share 3: of wall | cause: mostly | compile_ns 1? | "
        "autotune_ns 1? | kernel | label: shape | bucket 2? | other_kernels 4?: others | misses 3 | basis 6",
        "Mostly: the cold phase that took most. Kernel and shape: what most cold thread time was spent on.",
    ),
    ("requests", "job"): table(
        "Cold start of the whole job",
        "wall_ns: job | cold_ns | of_job_share 1: cold share | cold_exposed_ns: exposed | "
        "exposed_share: exposed share | requests 1 | steady_ns 1 | amortised_after: amortised | verdict",
        "Exposed: something was cold and no device worked; the share is of the job. Amortised: from so many warm "
        "requests on the exposed part is below 1 %. What preparing would save takes a recording that is prepared.",
    ),
    ("kernels", "paths"): table(
        "What each operator ran",
        "operator | label ?: inputs | path | implementation 2?: whose | calls 1 | total_ns | of_work_share: share | "
        "kernel 3 | kernels 4 | basis 5",
        "Device work by operator and input shapes; the share is of all work. Whose: the library, or the module of a "
        "Triton kernel. Inferred: judged by the kernel's name.",
    ),
    ("summary", "devices"): table(
        "Devices",
        "device | name 2: model | span_ns | busy_ns | idle_ns | lead_ns | tail_ns 1 | sum_ns 3: summed | events 1 | "
        "overlaps 4? | unlinked 2?",
        "Span is from the first to the last device event; idle = span - busy. Lead and tail lie before and after it.",
    ),
    ("summary", "wall"): table(
        "Wall clock of each device",
        "device | part | total_ns: time | of_wall_share | basis",
        "Every instant of the window counts once; the parts of a device sum to 100 %.",
    ),
    ("summary", "cold"): table(
        "Cold start in all",
        f"compiles | disk_hits 2 | module_loads 2 | candidates | {COLD} | tuning_device_ns 1: device tuning | basis 1",
        "Thread time inside the window: two threads that compile at once count twice.",
    ),
    ("summary", "requests"): table(
        "Requests",
        "name: request | wall_ns | cold_tax_ns | cold_share | mostly | device_work_ns 2: work | "
        "device_tuning_ns 1: tuning | cold_exposed_ns 4: exposed | basis 3",
        "Cold tax: the part of a request's wall time in cold phases. Work, tuning: device time of what it launched.",
    ),
    ("summary", "findings"): table(
        "What to look at first",
        "title: finding | cost_ns | share | of: of the | why 1 | fix 2: what to do | basis 1 | window 3: --window",
        "Largest cost first; each share names its whole. Costs overlap and do not add up.",
    ),
    ("idle", "phases"): table(
        "Why the device was idle",
        "device 2* | where | phase | total_ns: time | of_where_share: of it | of_wall_share | gaps 1 | basis",
        "Lead: before the first device event. Idle: between the first and the last. Tail: after the last.",
    ),
    ("idle", "lengths"): table(
        "How long the gaps are",
        "device 2* | from_ns | below_ns | gaps | total_ns: time | of_gaps_share: share | phase: mostly | "
        f"inferred_ns 1? | {_EVERY_PHASE}",
        "Few long gaps have one cause each; many short ones are a habit. The share is of the time of all gaps.",
    ),
    ("idle", "gaps"): table(
        "Longest gaps",
        "at_ns | gap_ns | where 2 | phase: mostly | ended_by | thread 3* | device 2* | basis 1",
        "At: from the first event of the trace, as --window counts. The phase is the largest part of the gap.",
    ),
    ("kernels", "kernels"): table(
        "Device time by kernel",
        "name: kernel | purpose | path 1 | calls | total_ns | of_device_share: share | median_ns 1 | p99_ns 3 | "
        "max_ns 2 | min_ns 4 | shapes 4 | origin 5: asked by",
        "Summed over executions; the share is of all device time. Tuning: benchmark repetitions of an autotuner.",
    ),
    ("kernels", "launches"): table(
        "Launch configurations",
        "name 1*: kernel | purpose | grid | block | registers 1? | shared_bytes 1? | calls | total_ns | median_ns | "
        "p99_ns 2 | min_ns 3 | max_ns 3 | device 2*",
        "Grid in blocks, block in threads; registers a thread, shared memory a block. Times are of single executions.",
    ),
    ("kernels", "durations"): table(
        "How long executions take",
        f"from_ns | below_ns | calls | total_ns | {_FOR_PURPOSE}",
        "Executions by duration; the ranges grow by a constant factor.",
        whole=True,
    ),
    ("requests", "requests"): table(
        "Requests",
        f"name: request | at_ns 4 | wall_ns | cold_tax_ns | cold_exposed_ns 3: exposed | {COLD} | launch_ns 4? | "
        "sync_ns 4? | memory_ns 4? | collective_ns 4? | framework_ns 4? | host_ns 3? | unattributed_ns 4? | "
        "device_work_ns 2? | device_tuning_ns 3? | cause 4?: cold by | source 3* | basis 3",
        "All phases sum to the wall time. Cold tax: the part in cold phases, plus waiting while the device only tuned.",
    ),
}
