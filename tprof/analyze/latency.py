"""Latency of requests: percentiles with and without cold start, first against steady, and what a whole job pays."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.analyze.rows import percentile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tprof.analyze.result import Row

ALL: Final = "all"
_COUNTER: Final = re.compile(r"#\d+")
SMALL_SHARE: Final = 0.01  # of a job: what is less is not worth preparing


def distribution(requests: list[Row]) -> list[Row]:
    """Percentiles (nearest rank) of the wall time of all requests, and of those of each name that comes twice or more.

    `of` says of which: `all`; `less cold tax`, the same requests with their cold tax taken off, which is accounting;
    `warm only`, the requests that had none.
    """
    return [
        {"name": name, "of": of, **_percentiles(walls)}
        for name, rows in _groups(requests).items()
        for of, walls in (
            ("all", [r["wall_ns"] for r in rows]),
            ("less cold tax", [r["wall_ns"] - r["cold_tax_ns"] for r in rows]),
            ("warm only", [r["wall_ns"] for r in rows if not r["cold_tax_ns"]]),
        )
    ]


def _groups(requests: list[Row]) -> dict[str, list[Row]]:
    """All requests, then those of each name that comes more than once; one name alone is all.

    A number behind `#` counts requests and names none: `request#3 L=512` is one of `request#* L=512`.
    """
    names = [_COUNTER.sub("#*", row["name"]) for row in requests]
    count = Counter(names)
    several = [name for name, n in count.most_common() if n > 1 and len(count) > 1]
    return {ALL: requests} | {name: [r for r, n in zip(requests, names, strict=True) if n == name] for name in several}


def _percentiles(walls: list[int]) -> Row:
    ordered = np.sort(np.array(walls, np.int64))
    ranks = {f"p{p}_ns": percentile(ordered, p) for p in (50, 95, 99)}
    return {"n": len(walls), **ranks, "max_ns": percentile(ordered, 100)}


def first_and_steady(requests: list[Row], reference: Mapping[str, int] | None = None) -> list[Row]:
    """The first request against the steady state, of all, of each name and of each bucket of shapes.

    Steady is the median (nearest rank) of the requests without cold tax that came after the first.

    Args:
        requests: rows of `request_budgets` in time order.
        reference: by name (`all` for all), the steady latency to compare with, ns.
    """
    groups = [("all" if name == ALL else "name", name, rows) for name, rows in _groups(requests).items()]
    buckets = dict.fromkeys(b for row in requests for b in row.get("buckets", ()))
    groups += [("bucket", b, [r for r in requests if b in r["buckets"]]) for b in buckets]
    return [_first_and_steady(by, name, rows, reference or {}) for by, name, rows in groups if rows]


def _first_and_steady(by: str, name: str, rows: list[Row], reference: Mapping[str, int]) -> Row:
    first, warm = rows[0], [row for row in rows[1:] if not row["cold_tax_ns"]]
    steady, work, token = (_median([row[key] for row in warm if row[key] is not None])
                           for key in ("wall_ns", "device_work_ns", "first_token_ns"))  # fmt: skip
    compared = reference.get(name)
    return {
        "by": by,
        "name": name,
        "n": len(rows),
        "cold_requests": sum(row["cold_tax_ns"] > 0 for row in rows),
        "first_ns": first["wall_ns"],
        "steady_ns": steady,
        "steady_n": len(warm),
        "first_to_steady_ratio": first["wall_ns"] / steady if steady else None,
        "first_token_first_ns": first["first_token_ns"],
        "first_token_steady_ns": token,
        "steady_work_ns": work,
        "reference_ns": compared,
        "to_reference_ratio": steady / compared if steady and compared else None,
    }


def _median(values: list[int]) -> int | None:
    return percentile(np.sort(np.array(values, np.int64)), 50)


def job(wall_ns: int, cold_ns: int, exposed_ns: int | None, steady: Row | None) -> Row:
    """What share of a whole job its cold start is, and how many warm requests make it small.

    The share that a verdict goes by is of the time in which something was cold and no device worked; where no device
    was recorded, of all the time in which something was cold.

    Args:
        wall_ns: length of the job.
        cold_ns: time in which anything was cold on any thread.
        exposed_ns: the part of it in which no device worked; None where no device was recorded.
        steady: the row `all` of `first_and_steady`; None without requests.
    """
    paid = cold_ns if exposed_ns is None else exposed_ns
    warm_ns = steady["steady_ns"] if steady else None
    share = paid / wall_ns if wall_ns else 0.0
    return {
        "wall_ns": wall_ns,
        "cold_ns": cold_ns,
        "of_job_share": cold_ns / wall_ns if wall_ns else 0.0,
        "cold_exposed_ns": exposed_ns,
        "exposed_share": None if exposed_ns is None else share,
        "requests": steady["n"] if steady else 0,
        "steady_ns": warm_ns,
        # the first n with paid / (paid + n warm) < 1 %
        "amortised_after": 99 * paid // warm_ns + 1 if warm_ns else None,
        "verdict": "leave it" if share < SMALL_SHARE else "prepare",
    }
