"""Purpose of device work: by the range that the user mapped, else by inference, else work."""

from __future__ import annotations

from support.small import call, kernel, span, trace

from tprof.align import AlignOptions, align

HOST = [
    span(0, 100, "warm-up"),
    span(10, 40, "autotune_candidate BM=64"),
    call(12, 14, correlation=1),
    call(50, 52, correlation=2),
    call(120, 122, correlation=3),
    call(20, 21, correlation=4, thread=1),
]
DEVICE = [kernel(15 + 10 * i, 20 + 10 * i, correlation=i) for i in (1, 2, 3, 4)]
PHASES = {"autotune_candidate*": "autotune", "warm*": "warmup"}


def purposes(phases: dict[str, str]) -> list[tuple[str, str]]:
    rows = align(trace(HOST, DEVICE), AlignOptions(phases)).device.to_pylist()
    return [(row["purpose"], row["purpose_basis"]) for row in rows]


def test_the_innermost_mapped_range_around_the_launch_says_why() -> None:
    assert purposes(PHASES) == [
        ("tuning", "recorded"),
        ("warmup", "recorded"),
        ("work", "inferred"),
        ("work", "inferred"),
    ]


def test_without_a_mapping_it_is_work() -> None:
    assert {purpose for purpose, _ in purposes({})} == {"work"}


def test_compile_makes_setup_and_capture_makes_capture() -> None:
    assert [p for p, _ in purposes({"warm*": "graph_capture"})][:2] == ["capture", "capture"]
    assert [p for p, _ in purposes({"warm*": "compile"})][:2] == ["setup", "setup"]


def test_a_mapped_range_is_a_recorded_cold_span() -> None:
    spans = align(trace(HOST, DEVICE), AlignOptions(PHASES)).spans.to_pylist()
    assert [(s["start_ns"], s["end_ns"], s["phase"], s["basis"]) for s in spans] == [(10, 40, "autotune", "recorded")]


def test_a_warm_mapping_never_hides_what_is_cold() -> None:
    phases = {"autotune_candidate*": "autotune", "warm*": "framework"}
    spans = align(trace(HOST, DEVICE), AlignOptions(phases)).spans.to_pylist()
    assert [(s["start_ns"], s["end_ns"], s["phase"]) for s in spans if s["phase"] == "autotune"] == [
        (10, 40, "autotune")
    ]
