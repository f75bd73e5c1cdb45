"""What a person sees of a plan; see `views`."""

from __future__ import annotations

from typing import Final

from tprof.present.columns import Column, View

PLAN_VIEWS: Final[dict[tuple[str, str], View]] = {
    ("plan", "kernels"): View(
        "To prepare",
        "Compile, tuning: what was recorded; a warm-up compiles in parallel and restores winners without tuning.",
        (
            Column("kernel", "kernel"),
            Column("variants", "variants"),
            Column("tunings", "winners"),
            Column("calls", "calls"),
            Column("compile_ns", "compile"),
            Column("tuning_ns", "tuning"),
            Column("target", "target", 1),
            Column("triton", "Triton", 2),
        ),
        whole=True,
    ),
    ("plan", "calls"): View(
        "To run once, for compiled models",
        "As `tprof.warmup(plan, call=...)` runs them.",
        (Column("name", "bucket or request"), Column("calls", "calls")),
    ),
    ("plan", "left_out"): View(
        "Left out", "Variants of kernels, or recordings.", (Column("count", "count"), Column("reason", "because"))
    ),
}
