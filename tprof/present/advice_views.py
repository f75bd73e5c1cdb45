"""What a person sees of advice before a kernel is written, and of a kernel's acceptance; see `views`."""

from __future__ import annotations

from typing import Final

from tprof.present.columns import Column, View

_VERDICT: Final = (Column("verdict", "verdict"), Column("reason", "why"), Column("basis", "basis", 6))

ADVICE_VIEWS: Final[dict[tuple[str, str], View]] = {
    ("advice", "job"): View(
        "What a kernel's gain is weighed against",
        "Warm: the window without exposed cold start; of requests, their median latency times their number. "
        "Work: a device worked, and its share of warm. A new shape: median cold time of a shape that was compiled here.",
        (
            Column("answer", "answer"),
            Column("job_ns", "job", 1),
            Column("cold_exposed_ns", "cold", 1),
            Column("of_job_share", "of job", 2),
            Column("warm_ns", "warm", 1),
            Column("work_share", "work", 1),
            Column("requests", "requests", 3),
            Column("shape_cold_ns", "a new shape", 2),
            Column("basis", "basis", 4),
        ),
    ),
    ("advice", "operators"): View(
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
    ("advice", "chains"): View(
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
    ("advice", "questions"): View(
        "What a profile cannot tell",
        "",
        (Column("topic", "about"), Column("question", "question")),
        whole=True,
    ),
}
