"""What a person sees of a comparison and of gates; see `views`."""

from __future__ import annotations

from typing import Final

from tprof.present.columns import Column, View

_CHANGED: Final = (
    Column("before_ns", "before"),
    Column("after_ns", "after"),
    Column("change_ns", "change"),
    Column("change_share", "of before", 2),
    Column("verdict", "verdict", 1),
    Column("band_ns", "noise band", 3, sparse=True),
)
_CAPTION: Final = "Medians over the repeats. What differs by no more than the noise band is left out."

COMPARE_VIEWS: Final[dict[tuple[str, str], View]] = {
    ("diff", "changes"): View(
        "What changed in kind",
        "Kernels per call of an operator or range, by path; configs, variants, and what was compiled when.",
        (
            Column("change", "change"),
            Column("name", "of"),
            Column("before", "before"),
            Column("after", "after"),
            Column("basis", "basis", 2),
        ),
    ),
    ("diff", "figures"): View("Figures", _CAPTION, (Column("figure", "figure"), *_CHANGED)),
    ("diff", "phases"): View("Wall clock of the devices", "", (Column("part", "part"), *_CHANGED)),
    ("diff", "kernels"): View(
        "Device work by kernel and shape",
        "Without the numbers that Inductor gives its kernels.",
        (Column("kernel", "kernel"), Column("shape", "shape"), *_CHANGED),
    ),
    ("diff", "requests"): View(
        "Requests, by name and occurrence",
        "",
        (Column("name", "request"), Column("occurrence", "no.", varied=True), *_CHANGED),
    ),
    ("diff", "cold_start"): View(
        "Cold start by kernel and phase", "", (Column("kernel", "kernel"), Column("phase", "phase"), *_CHANGED)
    ),
    ("check", "gates"): View(
        "Gates",
        "Tripped: the value is above the limit, or something else ran than was expected.",
        (
            Column("gate", "gate"),
            Column("state", "state"),
            Column("value", "value"),
            Column("limit", "limit", 1),
            Column("unit", "unit", 2),
            Column("why", "why", sparse=True),
            Column("basis", "basis", 3),
        ),
        whole=True,
    ),
}
