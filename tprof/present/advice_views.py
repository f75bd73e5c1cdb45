"""What a person sees of advice before a kernel is written, and of a kernel's acceptance; see `views`."""

from __future__ import annotations

from typing import Final

from tprof.present.cold_views import PHASE_COLUMNS, STAGES
from tprof.present.columns import Column, View

_VERDICT: Final = (Column("verdict", "verdict"), Column("reason", "why"), Column("basis", "basis", 6))

ADVICE_VIEWS: Final[dict[tuple[str, str], View]] = {
    ("advise", "answer"): View("In one sentence", "", (Column("answer", "answer"),), whole=True),
    ("advise", "job"): View(
        "What a kernel's gain is weighed against",
        "Cold: exposed, and its share of the job; below 1 % leave it. Warm: the rest; of requests, their median "
        "latency times their number. "
        "Work: a device worked, and its share of warm. A new shape: median cold time of a compiled shape.",
        (
            Column("job_ns", "job", 1),
            Column("cold_exposed_ns", "cold", 1),
            Column("of_job_share", "of job", 1),
            Column("cold_start", "cold start", 1),
            Column("warm_ns", "warm", 1),
            Column("work_share", "work", 1),
            Column("requests", "requests", 3),
            Column("shape_cold_ns", "a new shape", 2),
            Column("basis", "basis", 4),
        ),
    ),
    ("advise", "operators"): View(
        "Operators: worth a Triton kernel?",
        "Share: of device work. Bound: share of the warm time, the most that could be saved. Top 5: share of the calls "
        "of the five most frequent shapes. Have: it is compiled already.",
        (
            Column("operator", "operator"),
            Column("path", "path", 3),
            Column("implementation", "whose", 5, sparse=True),
            Column("calls", "calls", 2),
            Column("total_ns", "total", 4),
            Column("of_work_share", "share"),
            Column("of_warm_share", "bound"),
            Column("shapes", "shapes", 3),
            Column("top5_share", "top 5", 4),
            Column("chained_share", "in chains", 5, sparse=True),
            *_VERDICT,
        ),
    ),
    ("advise", "chains"): View(
        "Chains of PyTorch's own kernels: worth fusing?",
        "Saving: estimated as all but the longest step; bound: its share of the warm time. Gaps: the stream waited "
        "between steps, which `torch.compile` or a CUDA graph saves too.",
        (
            Column("chain", "chain"),
            Column("calls", "times"),
            Column("total_ns", "total", 3),
            Column("saving_ns", "saving", 1),
            Column("gap_ns", "gaps", 2),
            Column("of_warm_share", "bound"),
            Column("shapes", "shapes", 4),
            *_VERDICT,
        ),
        most=6,
    ),
    ("advise", "questions"): View(
        "What a profile cannot tell",
        "",
        (Column("topic", "about"), Column("question", "question")),
        whole=True,
    ),
}

_KERNEL: Final = Column("kernel", "kernel", varied=True)
ACCEPT_VIEWS: Final[dict[tuple[str, str], View]] = {
    ("accept", "verdicts"): View(
        "May it go online?",
        "",
        (Column("kernel", "kernel"), Column("verdict", "verdict"), Column("reason", "because")),
        whole=True,
    ),
    ("accept", "parts"): View(
        "The seven parts",
        "",
        (
            _KERNEL,
            Column("part", "part"),
            Column("state", "state"),
            Column("found", "found"),
        ),
        whole=True,
    ),
    ("accept", "failures"): View(
        "What failed",
        "The first three of each part; the JSON has all.",
        (_KERNEL, Column("part", "part"), Column("case", "case"), Column("error", "error")),
        whole=True,
    ),
    ("accept", "performance"): View(
        "Speed by bucket",
        "Medians of device time with a flushed L2; p10, p90: of ours. Faster: ours at its 90th percentile is below the "
        "median of all others. Roofline: the least time that this GPU was measured to need, over ours.",
        (
            _KERNEL,
            Column("bucket", "bucket"),
            Column("case", "shape", 3),
            Column("ours_ns", "ours"),
            Column("p10_ns", "p10", 4),
            Column("p90_ns", "p90", 3),
            Column("eager_ns", "eager"),
            Column("compile_ns", "compile"),
            Column("library_ns", "library", sparse=True),
            Column("of_ceiling_share", "roofline"),
            Column("faster", "faster"),
            Column("best", "best other", 2),
            Column("host_ns", "host", 5),
        ),
        whole=True,
    ),
    ("accept", "cost"): View(
        "Cold start by bucket",
        "Of its representative shapes in a process of their own: from an empty disk cache, then from disk. Served: "
        "by a search and its winner (tuned), by Triton without one, or by the fallback.",
        (
            _KERNEL,
            Column("bucket", "bucket"),
            Column("shapes", "shapes", 2),
            Column("served", "served by"),
            Column("variants", "variants"),
            Column("candidates", "candidates", 1),
            Column("cold_ns", "cold"),
            Column("disk_ns", "from disk"),
            *PHASE_COLUMNS[:5],
        ),
        whole=True,
    ),
    ("accept", "variants"): View(
        "Compiled variants",
        "Time of each compile stage, summed; registers, spills, shared memory and size: the most that one variant has.",
        (
            _KERNEL,
            Column("function", "function"),
            Column("variants", "variants"),
            *(Column(f"{stage}_ns", stage, 1, sparse=True) for stage in STAGES),
            Column("registers", "registers", 2),
            Column("spills", "spills", 2),
            Column("shared_bytes", "shared", 3),
            Column("binary_bytes", "binary", 3),
        ),
        whole=True,
    ),
    ("accept", "requests"): View(
        "A small model's request",
        "8 layers, each a 512 x 2048 x 2048 product and the kernel; warm, with ours and with the fallback. Gain: of a "
        "call over the best other. Pays after: calls whose gain is the cold start from an empty cache.",
        (
            _KERNEL,
            Column("bucket", "bucket"),
            Column("warm_ns", "ours"),
            Column("fallback_ns", "fallback"),
            Column("cold_ns", "cold start"),
            Column("disk_ns", "from disk", 1),
            Column("gain_ns", "gain"),
            Column("pays_after", "pays after"),
        ),
        whole=True,
    ),
    ("accept", "made_on"): View(
        "Judged with",
        "",
        (Column("device", "device"), Column("torch", "torch"), Column("triton", "triton"),
         Column("cache_bytes", "disk cache")),
        whole=True,
    ),
}  # fmt: skip
