"""What a person sees of a cold start, of searches, advice and acceptance, and of a plan; see `columns.table`."""

from __future__ import annotations

from typing import Final

from tprof.present.columns import View, table

_LOADED: Final = "compile_ns 1? | cache_ns 3? | launcher_build_ns 2?: launcher | module_load_ns 3?: load"
_TUNED: Final = f"{_LOADED} | autotune_ns 1?"
COLD: Final = f"{_TUNED} | graph_compile_ns 2?: graph | graph_capture_ns 3?: capture | init_ns 4?"
_STAGES: Final = "ir_ns 4? | ttir_ns 4? | ttgir_ns 4? | llir_ns 4? | ptx_ns 4? | cubin_ns 4?"
_VERDICT: Final = "verdict | reason: why | basis 6"

COLD_VIEWS: Final[dict[tuple[str, str], View]] = {
    ("accept", "verdicts"): table("May it go online?", "kernel | verdict | reason: because", whole=True),
    ("accept", "parts"): table("The seven parts", "kernel * | part | state | found", whole=True),
    ("accept", "failures"): table(
        "What failed", "kernel * | part | case | error", "The first three of each part; the JSON has all.", whole=True
    ),
    ("accept", "performance"): table(
        "Speed by bucket",
        "kernel * | bucket | case 3: shape | ours_ns | p10_ns 4 | p90_ns 3 | eager_ns | compile_ns | library_ns ? | "
        "of_ceiling_share: roofline | faster | best 2: best other | host_ns 5",
        "Medians of device time with a flushed L2; p10, p90: of ours. Faster: ours at its 90th percentile is below "
        "the median of all others. Roofline: the least time that this GPU was measured to need, over ours.",
        whole=True,
    ),
    ("accept", "cost"): table(
        "Cold start by bucket",
        "kernel * | bucket | shapes 2 | served: served by | variants | candidates 1 | cold_ns | "
        f"disk_ns: from disk | {_TUNED}",
        "Of its representative shapes in a process of their own: from an empty disk cache, then from disk. Served: "
        "by a search and its winner (tuned), by Triton without one, or by the fallback.",
        whole=True,
    ),
    ("accept", "variants"): table(
        "Compiled variants",
        "kernel * | function | variants | ir_ns 1? | ttir_ns 1? | ttgir_ns 1? | llir_ns 1? | ptx_ns 1? | cubin_ns 1? | "
        "registers 2 | spills 2 | shared_bytes 3 | binary_bytes 3",
        "Time of each compile stage, summed; registers, spills, shared memory and size: the most that one variant has.",
        whole=True,
    ),
    ("accept", "requests"): table(
        "A small model's request",
        "kernel * | bucket | warm_ns: ours | fallback_ns | cold_ns: cold start | disk_ns 1: from disk | gain_ns | "
        "pays_after",
        "8 layers, each a 512 x 2048 x 2048 product and the kernel; warm, with ours and with the fallback. Gain: of "
        "a call over the best other. Pays after: calls whose gain is the cold start from an empty cache.",
        whole=True,
    ),
    ("accept", "made_on"): table("Judged with", "device | torch | triton | cache_bytes: disk cache", whole=True),
    ("advise", "answer"): table("In one sentence", "answer", whole=True),
    ("advise", "job"): table(
        "What a kernel's gain is weighed against",
        "job_ns 1 | cold_exposed_ns 1: cold | of_job_share 1 | cold_start 1 | warm_ns 1 | work_share 1 | "
        "requests 3 | shape_cold_ns 2: a new shape | basis 4",
        "Cold: exposed, and its share of the job; below 1 % leave it. Warm: the rest; of requests, their median "
        "latency times their number. Work: a device worked, and its share of warm. A new shape: median cold time of "
        "a compiled shape.",
    ),
    ("advise", "operators"): table(
        "Operators: worth a Triton kernel?",
        "operator | path 3 | implementation 5?: whose | calls 2 | total_ns 4 | of_work_share: share | "
        f"of_warm_share: bound | shapes 3 | top5_share 4: top 5 | chained_share 5?: in chains | {_VERDICT}",
        "Share: of device work. Bound: share of the warm time, the most that could be saved. Top 5: share of the "
        "calls of the five most frequent shapes. Have: it is compiled already.",
    ),
    ("advise", "chains"): table(
        "Chains of PyTorch's own kernels: worth fusing?",
        "chain | calls: times | total_ns 3 | saving_ns 1 | gap_ns 2: gaps | of_warm_share: bound | shapes 4 | "
        f"{_VERDICT}",
        "Saving: estimated as all but the longest step; bound: its share of the warm time. Gaps: the stream waited "
        "between steps, which `torch.compile` or a CUDA graph saves too.",
        most=6,
    ),
    ("advise", "questions"): table("What a profile cannot tell", "topic: about | question", whole=True),
    ("autotune", "kernels"): table(
        "What searches cost and won",
        "kernel | tunings: searches | most_values_of 2?: key grows by | values 3? | candidates 1 | useful 2? | "
        "tuning_ns: cost | calls 1? | saved_ns 1? | verdict 4? | basis 3",
        "Saved: against the first configuration, over the calls so far. Useful: ever within 5 % of the best.",
    ),
    ("autotune", "tunings"): table(
        "Why winners won",
        "kernel 1* | key ? | wall_ns: search | winner_ns | margin_share | tie 2? | break_even_calls ?: pays after | "
        "why 1 | verdict 1?: doubt | winner 4?: configuration | basis 5",
        "Margin: to the next. Why: what the winner has better than it. Pays after: so many calls.",
    ),
    ("autotune", "candidates"): table(
        "Candidates, best first",
        "key ? | rank | config ?: configuration | time_ns | device_mean_ns 1?: device | spread_ns 3? | "
        "registers 3? | spills 3? | shared_bytes 3? | blocks_per_sm 1?: fit | limited_by 3? | waves 2? | "
        "error 1?: failed because | basis 4",
        "Time: what the tuner compared. Fit: blocks on a multiprocessor at once, and what limits them.",
    ),
    ("cold start", "phases"): table(
        "Cold start by phase",
        "phase | total_ns: time | of_window_share | spans 1: stretches | includes 2? | basis",
        "Thread time inside the window; phases exclude each other on a thread.",
    ),
    ("cold start", "kernels"): table(
        "Cold start by kernel",
        f"kernel | cold_ns | {COLD} | first_uses 3? | candidates 2? | tuning_device_ns 3?: device tuning | basis 3",
        "Time spent on behalf of a kernel; – is what no single kernel can be charged with.",
    ),
    ("cold start", "startup"): table(
        "Start-up until ready",
        "pid 1*: process | at_ns | part | within 1? | total_ns: time | of_startup_share: of start-up | "
        "stretches 3 | basis 2",
        "From the start of the process (else of the recording); the parts of a process sum to 100 %.",
        most=16,
    ),
    ("cold start", "candidates"): table(
        "Candidates timed by autotuning",
        "at_ns | kernel | config 1?: configuration | wall_ns | compile_ns 2? | launches 1 | "
        "device_ns: kernel time | flush_ns 1 | repetitions 2?: timed | median_ns 1?: measured | winner 1?: chosen | "
        "error 2?: failed because | basis 3",
        "Wall: of its benchmark, and of the compile before where recorded. Kernel and flush: device time, only tuning.",
    ),
    ("cold start", "tunings"): table(
        "Searches of an autotuner",
        "at_ns | kernel | why ? | wall_ns | compile_ns 1 | device_ns 3?: on the device | flush_ns 4? | "
        "candidates 2 | failed 3? | margin_share 2? | request 2? | after_ready 2?: ready | "
        "repeats 1?: tuned before | best 5?: chosen | asked_by 6? | basis 4",
        "Why: what is new in the key. Compile: part of wall. Margin: to the next best. Ready: start-up was over.",
        most=8,
    ),
    ("cold start", "specializations"): table(
        "Compiled variants",
        "at_ns | kernel | why: why new | wall_ns: took | cache_hit 1?: from disk | request 2? | "
        "after_ready 2?: ready | source 3 | asked_by 4? | registers 5? | spills 5? | shared_bytes 6? | "
        "binary_bytes 6?",
        "Why: what differs from the most similar earlier variant in the process. Ready: start-up was over by then.",
        most=10,
    ),
    ("cold start", "first_uses"): table(
        "First use of each compiled kernel",
        f"at_ns | kernel | wall_ns | cache_hit 2?: from disk | {_LOADED} | {_STAGES} | loads 6? | request 2? | "
        "waited_by 5?: waited for by | basis 5",
        "From the end of what the thread did before (recorded: from its compile) to the kernel's first launch.",
    ),
    ("cold start", "waterfall"): table(
        "What was cold, step by step",
        "number 3: step | at_ns | role | kernel | config 2?: configuration | phase | what 1? | wall_ns: took | "
        "thread 4* | basis 2",
        "At: from the first event of the trace. What: the stage of a compile, or the function at work.",
    ),
    ("cold start", "cache_misses"): table(
        "Compiled again although an earlier process had",
        "kernel | part: differs in | before | after | variants 1 | compile_ns: took | earlier_pid 2: by process | "
        "pid 2: again by",
        "What differs in the key of Triton's disk cache, summed over the variants of a kernel.",
        most=8,
    ),
    ("cold start", "recompiles"): table(
        "Graphs compiled again by Dynamo",
        "at_ns | function 1 | guard: guard that failed | wall_ns: took | request 2? | after_ready 2?: ready | source 3",
        "The guard that failed is the first of those of the earlier compiles.",
        most=8,
    ),
    ("cold start", "graph_caches"): table(
        "Caches of compiled graphs",
        "at_ns | cache | outcome | reason ?: because | time_saved_ns ?: saved | request 2? | key 3?",
        "Saved: what torch says that a hit saved.",
        most=6,
    ),
    ("cold start", "selections"): table(
        "Implementations that Inductor chose", "at_ns | operator | best: chosen | request 2?", most=6
    ),
    ("plan", "kernels"): table(
        "To prepare",
        "kernel | variants | tunings: winners | calls | compile_ns | tuning_ns | target 1 | triton 2: Triton",
        "Compile, tuning: what was recorded; a warm-up compiles in parallel and restores winners without tuning.",
        whole=True,
    ),
    ("plan", "calls"): table(
        "To run once, for compiled models",
        "name: bucket or request | calls",
        "As `tprof.warmup(plan, call=...)` runs them.",
        whole=True,
    ),
    ("plan", "left_out"): table(
        "Left out", "count | reason: because", "Variants of kernels, or recordings.", whole=True
    ),
}
