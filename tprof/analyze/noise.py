"""Figures of two sides, each recorded once or several times: what changed, and whether repeats vary as much."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tprof.analyze.result import Row

_BAND: Final = 2  # times the range
_MOST: Final = 0.9  # of the keys have repeats that lie no further apart, in proportion


def compare(before: Sequence[Mapping[Any, int]], after: Sequence[Mapping[Any, int]]) -> dict[Any, Row]:
    """What differs between two sides.

    The noise band of a key is twice the larger range of its repeats; two or three of them may lie together by chance,
    so it is no narrower, in proportion, than that of nine keys in ten.

    Args:
        before: per recording of one side, a time in ns or a count for each key; a key that is not there is 0.
        after: the same of the other side.

    Returns:
        By key, before_ns and after_ns (medians), change_ns, change_share (of before; null where that is 0), band_ns
        (null where neither side has repeats), and verdict: new, gone, more or less. Keys that do not differ, or by no
        more than the band, are left out; the largest change comes first.
    """
    keys = dict.fromkeys(key for side in (*before, *after) for key in side)
    sides = {key: ([s.get(key, 0) for s in before], [s.get(key, 0) for s in after]) for key in keys}
    usual = _usual(list(sides.values()))
    rows = {key: _row(*pair, usual) for key, pair in sides.items()}
    found = {k: r for k, r in rows.items() if r["change_ns"] and abs(r["change_ns"]) > (r["band_ns"] or 0)}
    return dict(sorted(found.items(), key=lambda item: -abs(item[1]["change_ns"])))


def _spread(before: list[int], after: list[int]) -> int | None:
    """The larger range of the repeats of a side; None where neither has any."""
    return max((max(side) - min(side) for side in (before, after) if len(side) > 1), default=None)


def _usual(sides: list[tuple[list[int], list[int]]]) -> float:
    """The range in proportion that nine keys in ten do not exceed."""
    known = [(_spread(was, now), max(median(was), median(now))) for was, now in sides]
    found = sorted(spread / middle for spread, middle in known if spread is not None and middle)
    return found[int(_MOST * (len(found) - 1))] if found else 0.0


def _row(before: list[int], after: list[int], usual: float) -> Row:
    was, now, spread = round(median(before)), round(median(after)), _spread(before, after)
    return {
        "before_ns": was,
        "after_ns": now,
        "change_ns": now - was,
        "change_share": (now - was) / was if was else None,
        "band_ns": None if spread is None else round(_BAND * max(spread, usual * max(was, now))),
        "verdict": _verdict(was=any(before), now=any(after), more=now > was),
    }


def _verdict(*, was: bool, now: bool, more: bool) -> str:
    if was != now:
        return "new" if now else "gone"
    return "more" if more else "less"


def told(before: Sequence[Mapping[Any, Any]], after: Sequence[Mapping[Any, Any]]) -> dict[Any, tuple[Any, Any]]:
    """(before, after) of every key of which no recording of one side says what one of the other says.

    Of several repeats the first speaks. A key that a recording lacks is None there.
    """
    found = {}
    for key in dict.fromkeys(k for side in (*before, *after) for k in side):
        was, now = ([s.get(key) for s in side] for side in (before, after))
        if not set(was) & set(now):
            found[key] = was[0], now[0]
    return found
