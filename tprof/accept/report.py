"""From what was found to seven parts and a verdict per kernel. No torch here: rows in, rows out."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tprof.accept.speeds import ahead, bucket_speeds, request_rows
from tprof.analyze.result import Result, few

if TYPE_CHECKING:
    from tprof.accept.compiling import Compiling

Row = dict[str, Any]
PASSED, FAILED, NOT_RUN = "passed", "failed", "not run"
FALLBACK: Final = "fallback"
_NO_GPU: Final = "needs a GPU: run it there without --cpu"
SHOWN: Final = 3  # failures of a part on a page; the payload has all
FEW: Final = 2  # shapes: a verdict on fewer would be on one


@dataclass(frozen=True)
class Found:
    """What the processes found.

    Attributes:
        numbers: of `worker numbers`: rows of cases, and maintenance.
        calls: of `worker cost`: calls that failed.
        compiling: both recordings of `cost`.
        cache_bytes: size of Triton's disk cache after them.
        speed: of `worker speed`; None without a GPU.
    """

    numbers: Row
    calls: Row
    compiling: Compiling
    cache_bytes: int
    speed: Row | None


def report(target: str, found: Found) -> Result:
    """All tables, and the payload by kernel."""
    kernels = found.numbers["kernels"]
    parts = {kernel: _parts(kernel, found) for kernel in kernels}
    verdicts = [{"kernel": kernel, **_verdict(kernel, parts[kernel], found)} for kernel in kernels]
    failures = _failures(found)
    speeds = [row for kernel in kernels for row in bucket_speeds(kernel, found.speed)]
    made_on = {name: found.numbers[name] for name in ("device", "torch", "triton")}
    made_on["cache_bytes"] = found.cache_bytes
    tables = {
        "verdicts": verdicts,
        "parts": [row for rows in parts.values() for row in rows],
        "failures": [row for row in failures if row["number"] <= SHOWN],
        "performance": speeds,
        "cost": [row for kernel in kernels for row in found.compiling.buckets(kernel)],
        "variants": [row for kernel in kernels for row in found.compiling.variants(kernel)],
        "requests": [row for kernel in kernels for row in request_rows(kernel, found.speed, found.compiling)],
        "made_on": [made_on],
    }
    every = tables | {"failures": failures, "maintenance": found.numbers["maintenance"]}
    of = {name: {kernel: [row for row in rows if row.get("kernel") == kernel] for kernel in kernels}
          for name, rows in every.items()}  # fmt: skip
    payload = {"target": target, "made_on": made_on, "kernels": [
        row | {name: rows[row["kernel"]] for name, rows in of.items() if name not in {"verdicts", "made_on"}}
        for row in verdicts]}  # fmt: skip
    return Result("accept", tables, payload)


def _failures(found: Found) -> list[Row]:
    """Cases and calls that failed, numbered within their kernel and part."""
    count: Counter[tuple[str, str]] = Counter()
    rows = []
    for row in (*found.numbers["rows"], *found.calls["rows"]):
        if row["error"]:
            count[row["kernel"], row["part"]] += 1
            rows.append(row | {"number": count[row["kernel"], row["part"]]})
    return rows


def _parts(kernel: str, found: Found) -> list[Row]:
    speed = bucket_speeds(kernel, found.speed)
    parts = {
        "correctness": _cases(kernel, "correctness", found),
        "stability": _cases(kernel, "stability", found),
        "performance": _performance(speed) if found.speed else (NOT_RUN, _NO_GPU),
        "compile cost": _cost(kernel, found),
        "end to end": _end_to_end(kernel, found) if found.speed else (NOT_RUN, _NO_GPU),
        "fallback": _fallback(kernel, found),
        "maintenance": _maintenance(kernel, found),
    }
    return [{"kernel": kernel, "part": part, "state": state, "found": what} for part, (state, what) in parts.items()]


def _cases(kernel: str, part: str, found: Found) -> tuple[str, str]:
    rows = [row for row in found.numbers["rows"] if (row["kernel"], row["part"]) == (kernel, part)]
    wrong = [row for row in rows if row["error"]]
    if not rows:
        return NOT_RUN, "the spec has no case for it"
    if wrong:
        return FAILED, f"{len(wrong)} of {len(rows)} cases; {wrong[0]['case']}: {wrong[0]['error']}"
    where = "on the GPU" if found.numbers["device"] else "in Triton's interpreter"
    return PASSED, f"{len(rows)} cases {where} agree with the reference in float64"


def _performance(speed: list[Row]) -> tuple[str, str]:
    if len(speed) < FEW:
        return NOT_RUN, f"{len(speed)} shapes were measured, and a verdict never comes from one"
    better = [row for row in speed if row["faster"]]
    least = sorted(row["of_ceiling_share"] for row in speed if row["of_ceiling_share"] is not None) or [0.0]
    roofline = f"{least[0]:.0%} to {least[-1]:.0%} of the roofline"
    text = f"faster than all others in {len(better)} of {len(speed)} shapes; {roofline}"
    return (PASSED if ahead(speed) else FAILED), text


def _cost(kernel: str, found: Found) -> tuple[str, str]:
    """Fails where a call fails, where another process compiles again, or where shapes compile one by one."""
    failed = [row for row in found.calls["rows"] if row["kernel"] == kernel]
    if failed:
        return FAILED, f"{len(failed)} calls fail; {failed[0]['case']}: {failed[0]['error']}"
    rows, probes = found.compiling.buckets(kernel), found.compiling.by_probe(kernel)
    again = [n for n in probes[1:] if n]
    if len(again) > len(probes[1:]) / 2:
        return FAILED, f"{len(again)} of {len(probes[1:])} shapes beside a hot one compiled a variant of their own"
    if missed := found.compiling.missed(kernel):
        return FAILED, f"{missed} variants were compiled again by a second process: the disk cache does not find them"
    if all(row["served"] == FALLBACK for row in rows):
        return NOT_RUN, "nothing launched a Triton kernel: only the fallback served it"
    total = {name: sum(row[name] for row in rows) for name in ("variants", "cold_ns", "disk_ns", "candidates")}
    timed = f", {total['candidates']} candidates" if total["candidates"] else ""
    unknown = "" if found.numbers["device"] else "; what a candidate takes, needs a GPU"
    return PASSED, (f"{total['variants']} variants for {len(rows)} buckets{timed}: {total['cold_ns'] / 1e9:.2f} s, "
                    f"{total['disk_ns'] / 1e9:.2f} s from disk{unknown}")  # fmt: skip


def _end_to_end(kernel: str, found: Found) -> tuple[str, str]:
    rows = request_rows(kernel, found.speed, found.compiling)
    if not rows:
        return NOT_RUN, "no request could be measured"
    paying = [row for row in rows if row["pays_after"]]
    if not paying:
        return FAILED, "in no bucket is a small model's warm request faster, so its cold start is never paid back"
    first = min(row["pays_after"] for row in paying)
    return PASSED, f"pays in {len(paying)} of {len(rows)} buckets, the first after {first:,} calls from an empty cache"


def _fallback(kernel: str, found: Found) -> tuple[str, str]:
    state, text = _cases(kernel, "fallback", found)
    by = {row["bucket"]: row["served"] for row in found.compiling.buckets(kernel)}
    taken = [bucket for bucket, served in by.items() if FALLBACK in served]
    where = f"taken in {few(taken)}" if taken else "not taken by a representative shape"
    return state, f"{text}; {where}; outside all buckets: {by.get('other', 'no shape was called')}"


def _maintenance(kernel: str, found: Found) -> tuple[str, str]:
    row = next(row for row in found.numbers["maintenance"] if row["kernel"] == kernel)
    return PASSED, (f"{row['functions']} Triton functions of {row['lines']} lines, {row['branches']} branches, "
                    f"{row['candidates']} candidates, {row['buckets']} buckets, {row['dtypes']} dtypes")  # fmt: skip


def _verdict(kernel: str, parts: list[Row], found: Found) -> Row:
    """Use it, use it for some buckets only, or do not; with the reasons."""
    failed = [row for row in parts if row["state"] == FAILED and row["part"] not in {"performance", "end to end"}]
    if failed:
        return {"verdict": "do not", "reason": "; ".join(f"{row['part']}: {row['found']}" for row in failed)}
    speed = bucket_speeds(kernel, found.speed)
    if found.speed is None or len(speed) < FEW:
        return {
            "verdict": "cannot say",
            "reason": "nothing speaks against it, but whether it is faster was not measured",
        }
    good, all_ = ahead(speed), {row["bucket"] for row in speed if row["bucket"] != "other"}
    slower = few(f"{row['bucket']}: {row['best'] or 'none ran'}" for row in speed if row["bucket"] not in good)
    if not good:
        return {"verdict": "do not", "reason": f"another is as fast or faster in every bucket ({slower})"}
    if all_ <= good:
        return {"verdict": "use it", "reason": "faster than eager, torch.compile and the library in every bucket"}
    return {"verdict": f"use it for {few(sorted(good), 9)} only", "reason": f"elsewhere others are as fast ({slower})"}
