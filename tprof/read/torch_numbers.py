"""Numbers of a trace as text, parsed in bulk and exactly.

Absolute microseconds with three decimals (1704161511420306.491) do not fit a float64, so no time passes through one.
"""

from __future__ import annotations

import json
from decimal import ROUND_FLOOR, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msgspec import Raw

BAD_TIME: Final = np.iinfo(np.int64).min
_LIST: Final = b"[] \t\r\n"
_PLAIN: Final = b"0123456789.,-"
_INT64_DIGITS: Final = 18  # of any such number
_INT64_LIMIT: Final = 9.2e18
_NS_DECIMALS: Final = 3  # decimals of a microsecond that a nanosecond has


def nanoseconds(values: Sequence[Raw]) -> np.ndarray:
    """Microseconds as JSON numbers or strings, to integer nanoseconds (shape (rows,)).

    Decimals behind the third are cut (towards minus infinity). `BAD_TIME` stands for what is no finite number.
    """
    if not values:
        return np.empty(0, np.int64)
    text = b",".join(cast("Sequence[bytes]", values))
    if b'"' in text:
        text = text.replace(b'"', b"")
    if not text.translate(None, _PLAIN) and (out := _plain(text, len(values))) is not None:
        return out
    return np.array([_one(bytes(value)) for value in values], np.int64)


def _plain(text: bytes, rows: int) -> np.ndarray | None:
    """Comma-separated decimals that fit an int64 without their dots; None where they are not that."""
    raw = np.frombuffer(text, np.uint8)
    ends = np.append(np.flatnonzero(raw == ord(",")), len(raw))
    starts = np.append(0, ends[:-1] + 1)
    dots = np.flatnonzero(raw == ord("."))
    owner = np.searchsorted(ends, dots)
    odd = len(ends) != rows or (ends == starts).any() or (np.diff(owner) == 0).any()
    if odd or (b"-" in text and not np.isin(np.flatnonzero(raw == ord("-")), starts).all()):
        return None
    digits = _split(text.replace(b".", b""), rows)
    if digits is None:
        return None
    decimals = np.zeros(rows, np.int64)
    decimals[owner] = ends[owner] - dots - 1
    return _scale(digits, decimals)


def _split(text: bytes, rows: int) -> np.ndarray | None:
    """Comma-separated integers; None unless there are `rows` of them."""
    try:
        out = np.fromstring(text, np.int64, sep=",")  # numpy's parser of text; only its binary mode is deprecated
    except ValueError:
        return None
    return out if len(out) == rows else None


def _scale(digits: np.ndarray, decimals: np.ndarray) -> np.ndarray | None:
    if (decimals == _NS_DECIMALS).all():
        return digits if (np.abs(digits) < _INT64_LIMIT).all() else None
    up = 10 ** np.clip(_NS_DECIMALS - decimals, 0, None)
    down = 10 ** np.clip(decimals - _NS_DECIMALS, 0, _INT64_DIGITS)
    if (np.abs(digits.astype(np.float64) * up) >= _INT64_LIMIT).any() or (decimals > _INT64_DIGITS).any():
        return None  # too large, or cut off at the limit by the parser
    return cast("np.ndarray", digits * up // down)


def _one(value: bytes) -> int:
    try:
        text = json.loads(value, parse_float=str, parse_int=str)
        number = Decimal(text.strip()) * 1000 if isinstance(text, str) else Decimal("NaN")
    except (InvalidOperation, ValueError):
        return int(BAD_TIME)
    if not number.is_finite() or abs(number) >= 1 << 63:
        return int(BAD_TIME)
    return int(number.to_integral_value(ROUND_FLOOR))


def triples(values: Sequence[Raw]) -> np.ndarray:
    """JSON lists of three integers, shape (rows, 3) int32; -1 where a value is something else."""
    text = b",".join(cast("Sequence[bytes]", values))
    flat = None
    if text.count(b"[") == len(values) and text.count(b",") == 3 * len(values) - 1:
        flat = _split(text.translate(None, _LIST), 3 * len(values))
    if flat is None:
        flat = np.array([number for value in values for number in _triple(bytes(value))], np.int64)
    return np.clip(flat, -1, np.iinfo(np.int32).max).astype(np.int32).reshape(-1, 3)


def _triple(value: bytes) -> list[int]:
    numbers: Any = json.loads(value)
    if isinstance(numbers, list) and len(numbers) == 3 and all(isinstance(n, int) and n < 1 << 63 for n in numbers):
        return numbers
    return [-1, -1, -1]


def int64(values: list[int]) -> np.ndarray:
    """Integers of up to 64 bits, signed or not, as int64: what does not fit keeps its bit pattern."""
    try:
        return np.array(values, np.int64)
    except OverflowError:
        return np.array([value & (1 << 64) - 1 for value in values], np.uint64).astype(np.int64)
