from __future__ import annotations

from decimal import ROUND_FLOOR, Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from tprof.read.torch_numbers import BAD_TIME, int64, nanoseconds, triples


def parse(*texts: str) -> list[int]:
    return nanoseconds([Raw(text.encode()) for text in texts]).tolist()


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1704161511420306.491", 1704161511420306491),
        ('"1704161511420306.491"', 1704161511420306491),
        ('"1704161511420306.491\\t"', 1704161511420306491),
        ("1600000000000010", 1600000000000010000),
        ("5125955178576.351", 5125955178576351),
        ("0.5", 500),
        ("-0.5", -500),
        ("-0.0005", -1),
        ("1.23456", 1234),
        ("1.9999999999999999999999", 1999),
        ("1.5e3", 1_500_000),
        ("1E-3", 1),
        ("9223372036854775.807", 9223372036854775807),
        ("9223372036854775.808", BAD_TIME),
        ("1e400", BAD_TIME),
        ("null", BAD_TIME),
        ('"NaN"', BAD_TIME),
        ('""', BAD_TIME),
        ("", BAD_TIME),
        ("[1]", BAD_TIME),
        ("true", BAD_TIME),
        ("--1", BAD_TIME),
        ('"1-2"', BAD_TIME),
        ('"1.2.3"', BAD_TIME),
        ('"1,2"', BAD_TIME),
    ],
)
def test_one_time(text: str, ns: int) -> None:
    assert parse(text) == [ns]
    assert parse("1.000", text, "2.5") == [1000, ns, 2500]


decimals = st.decimals(min_value=-(10**12), max_value=9 * 10**15, allow_nan=False, places=None).map(
    lambda d: Decimal(format(d, "f"))
)


@given(st.lists(st.one_of(decimals, st.decimals(0, 9 * 10**15, places=3), st.integers(0, 9 * 10**15)), max_size=20))
def test_times_equal_decimal_arithmetic(values: list[Decimal | int]) -> None:
    wanted = [int((Decimal(v) * 1000).to_integral_value(ROUND_FLOOR)) for v in values]
    assert parse(*(format(Decimal(v), "f") for v in values)) == wanted


def test_triples() -> None:
    values = [b"[1,2,3]", b"[\n 64,\n 1,\n 1\n]", b"[-1,-1,-1]"]
    assert triples([Raw(v) for v in values]).tolist() == [[1, 2, 3], [64, 1, 1], [-1, -1, -1]]
    odd = [b"[1,2]", b"[1,2,3,4]", b'"x"', b"[5,6,7]", b"[1,2,4294967295]", b"[1,2.5,3]", b"null"]
    none = [-1, -1, -1]
    assert triples([Raw(v) for v in odd]).tolist() == [none, none, none, [5, 6, 7], [1, 2, 2147483647], none, none]


def test_integers_beyond_int64_keep_their_bits() -> None:
    assert int64([1, 18446744073709551615]).tolist() == [1, -1]
    assert int64([]).dtype == np.int64
