"""What a person sees of autotuning explained; see `views`."""

from __future__ import annotations

from typing import Final

from tprof.present.columns import Column, View

AUTOTUNE_VIEWS: Final[dict[tuple[str, str], View]] = {
    ("autotune", "kernels"): View(
        "What searches cost and won",
        "Saved: against the first configuration, over the calls so far. Useful: ever within 5 % of the best.",
        (
            Column("kernel", "kernel"),
            Column("tunings", "searches"),
            Column("most_values_of", "key grows by", 2, sparse=True),
            Column("values", "values", 3, sparse=True),
            Column("candidates", "candidates", 1),
            Column("useful", "useful", 2, sparse=True),
            Column("tuning_ns", "cost"),
            Column("calls", "calls", 1, sparse=True),
            Column("saved_ns", "saved", 1, sparse=True),
            Column("verdict", "verdict", 4, sparse=True),
            Column("basis", "basis", 3),
        ),
    ),
    ("autotune", "tunings"): View(
        "Why winners won",
        "Margin: to the next. Why: what the winner has better than it. Pays after: so many calls.",
        (
            Column("kernel", "kernel", 1, varied=True),
            Column("key", "key", sparse=True),
            Column("wall_ns", "search"),
            Column("winner_ns", "winner"),
            Column("margin_share", "margin"),
            Column("tie", "tie", 2, sparse=True),
            Column("break_even_calls", "pays after", sparse=True),
            Column("why", "why", 1),
            Column("verdict", "doubt", 1, sparse=True),
            Column("winner", "configuration", 4, sparse=True),
            Column("basis", "basis", 5),
        ),
    ),
    ("autotune", "candidates"): View(
        "Candidates, best first",
        "Time: what the tuner compared. Fit: blocks on a multiprocessor at once, and what limits them.",
        (
            Column("key", "key", sparse=True),
            Column("rank", "rank"),
            Column("config", "configuration", sparse=True),
            Column("time_ns", "time"),
            Column("device_mean_ns", "device", 1, sparse=True),
            Column("spread_ns", "spread", 3, sparse=True),
            Column("registers", "registers", 3, sparse=True),
            Column("spills", "spills", 3, sparse=True),
            Column("shared_bytes", "shared", 3, sparse=True),
            Column("blocks_per_sm", "fit", 1, sparse=True),
            Column("limited_by", "limited by", 3, sparse=True),
            Column("waves", "waves", 2, sparse=True),
            Column("error", "failed because", 1, sparse=True),
            Column("basis", "basis", 4),
        ),
    ),
}
