from __future__ import annotations

import pytest

from tprof.present import units


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 s"), (7, "7 ns"), (999, "999 ns"), (1_000, "1.00 us"), (12_345, "12.3 us"), (999_499, "999 us"),
        (999_999, "1.00 ms"), (45_600_000, "45.6 ms"), (1_234_567_890, "1.23 s"), (99_960_000_000, "100 s"),
        (3_600_000_000_000, "3,600 s"), (-1_500, "-1.50 us"), (None, "–"), (9_996, "10.0 us"),
    ],
)  # fmt: skip
def test_duration(ns: int | None, text: str) -> None:
    assert units.duration(ns) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.256, "25.6 %"),
        (1e-9, "< 0.1 %"),
        (0.9999, "> 99.9 %"),
        (None, "–"),
        (1.5, "150.0 %"),
    ],
)
def test_share(fraction: float | None, text: str) -> None:
    assert units.share(fraction) == text


def test_ratios_and_counts_over_time() -> None:
    assert [units.ratio(x) for x in (1.0417, 12.34, 8819.2)] == ["1.04 x", "12.3 x", "8,819 x"]
    assert (units.spark([0, 1, 4, 8]), units.spark([0, 0]), units.spark([])) == ("·▁▄█", "··", "")


def test_counts_and_sizes() -> None:
    assert units.count(1_234_567) == "1,234,567"
    assert units.size(1536) == "1.50 KiB"
    assert units.size(12) == "12 B"
    assert units.rate(1, 0) == "–"
