"""From measured times to rows: who is faster where, how near to the roofline, and when a cold start is paid back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tprof.accept.compiling import Compiling

Row = dict[str, Any]
OTHERS: Final = ("eager", "compile", "library")


def bucket_speeds(kernel: str, speed: Row | None) -> list[Row]:
    """One row per shape: times in ns, the best of the others, and whether ours is faster beyond the spread.

    `faster`: the 90th percentile of ours is below the median of every other.
    """
    return [_speed(row) for row in (speed or {"rows": []})["rows"] if row["kernel"] == kernel]


def _speed(row: Row) -> Row:
    results, ours = row["results"], row["results"].get("ours")
    others = {name: results[name]["median_us"] for name in OTHERS if name in results}
    best = min(others, key=lambda name: others[name], default=None)
    faster = bool(ours and (best is None or ours["p90_us"] < others[best]))
    return {
        "kernel": row["kernel"],
        "bucket": row["bucket"],
        "case": row["case"],
        **{f"{name}_ns": _ns(results.get(name), "median_us") for name in ("ours", *OTHERS)},
        "p10_ns": _ns(ours, "p10_us"),
        "p90_ns": _ns(ours, "p90_us"),
        "host_ns": _ns(ours, "host_us"),
        "of_ceiling_share": row["least_us"] / ours["median_us"] if ours else None,
        "best": best,
        "faster": faster,
        "error": row["errors"].get("ours"),
    }


def _ns(found: Row | None, name: str) -> int | None:
    return round(1e3 * found[name]) if found else None


def ahead(speeds: Iterable[Row]) -> set[str]:
    """Declared buckets in all of whose shapes ours is faster."""
    by: dict[str, list[bool]] = {}
    for row in speeds:
        by.setdefault(row["bucket"], []).append(row["faster"])
    return {bucket for bucket, all_ in by.items() if bucket != "other" and all(all_)}


def request_rows(kernel: str, speed: Row | None, compiling: Compiling) -> list[Row]:
    """One row per bucket: a small model's warm request with ours and with the fallback, and what the cold start adds.

    `pays_after`: calls whose gain over the best of the others sums to the cold start from an empty disk cache; None
    where there is no gain. The bucket's first shape stands for it.
    """
    cold = {row["bucket"]: row for row in compiling.buckets(kernel)}
    first: dict[str, Row] = {}
    for row in (speed or {"rows": []})["rows"]:
        if row["kernel"] == kernel:
            first.setdefault(row["bucket"], row)
    return [_request(_speed(row), row, cold[bucket]) for bucket, row in first.items() if bucket in cold]


def _request(row: Row, raw: Row, cold: Row) -> Row:
    others = [row[f"{name}_ns"] for name in OTHERS if row[f"{name}_ns"]]
    gain = min(others) - row["ours_ns"] if others and row["ours_ns"] else 0
    warm = {name: raw.get(f"request_{to}_us") for name, to in (("warm", "function"), ("fallback", "fallback"))}
    return {
        "kernel": row["kernel"],
        "bucket": row["bucket"],
        **{f"{name}_ns": None if us is None else round(1e3 * us) for name, us in warm.items()},
        "cold_ns": cold["cold_ns"],
        "disk_ns": cold["disk_ns"],
        "gain_ns": gain,
        "pays_after": -(-cold["cold_ns"] // gain) if gain > 0 and row["faster"] else None,
    }
