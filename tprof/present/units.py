"""Numbers as people read them: three significant digits with a unit, shares in per cent, counts in groups of three."""

from __future__ import annotations

from typing import Final

UNKNOWN: Final = "–"  # not known, or does not apply: never a zero

_TIME: Final = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns"))
_BARS: Final = "·▁▂▃▄▅▆▇█"
_BYTES: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def duration(ns: int | None) -> str:
    """Nanoseconds as `1.23 s`, `45.6 ms`, `12.3 us`, `7 ns`.

    >>> duration(1_234_567_890), duration(999_999), duration(0)
    ('1.23 s', '1.00 ms', '0 s')
    """
    return UNKNOWN if ns is None else _scaled(ns, _TIME, "0 s")


def size(count: int | None) -> str:
    """Bytes as `1.50 GiB`, `12 B`."""
    return UNKNOWN if count is None else _scaled(count, _BYTES, "0 B")


def share(fraction: float | None) -> str:
    """A fraction of one as per cent; what is not quite nothing or everything never reads as it.

    >>> share(0.25), share(0.00001), share(0.99999), share(1.0)
    ('25.0 %', '< 0.1 %', '> 99.9 %', '100 %')
    """
    if fraction is None:
        return UNKNOWN
    if fraction in {0, 1}:
        return f"{fraction:.0%}".replace("%", " %")
    if 0 < fraction < 0.0005:
        return "< 0.1 %"
    if 0.9995 <= fraction < 1:
        return "> 99.9 %"
    return f"{100 * fraction:.1f} %"


def count(number: int | None) -> str:
    """An integer in groups of three."""
    return UNKNOWN if number is None else f"{number:,}"


def ratio(value: float) -> str:
    """How many times something is another: `1.04 x`, `8,820 x`."""
    return f"{_three_digits(value, whole=False)} x"


def spark(counts: list[int]) -> str:
    """Counts over time as one line of bars, the largest the highest; none is a dot.

    >>> spark([0, 1, 8])
    '·▁█'
    """
    most = max(counts, default=0)
    return "".join(_BARS[-(-(len(_BARS) - 1) * n // most)] if n else _BARS[0] for n in counts)


def rate(part: int, whole: int) -> str:
    """`part` of `whole` in per cent; unknown where there is no whole."""
    return share(part / whole) if whole else UNKNOWN


def _scaled(value: int, units: tuple[tuple[int, str], ...], zero: str) -> str:
    """Three significant digits in the largest unit that keeps the number at one or more."""
    if not value:
        return zero
    sign, magnitude = ("-" if value < 0 else ""), abs(value)
    for factor, unit in units:
        # the first unit in which three digits round to one or more: 999,999 ns is 1.00 ms, not 1000 us
        if magnitude >= factor * 0.9995 or factor == 1:
            return f"{sign}{_three_digits(magnitude / factor, whole=factor == 1)} {unit}"
    raise AssertionError("the last unit has factor 1")


def _three_digits(number: float, *, whole: bool) -> str:
    if whole or number >= 99.95:
        return f"{number:,.0f}"
    return f"{number:.2f}" if number < 9.995 else f"{number:.1f}"
