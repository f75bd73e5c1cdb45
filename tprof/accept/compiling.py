"""What two recordings on one disk cache say of a kernel's cold start: the first compiles, the second finds it there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tprof.facade import Trace

Row = dict[str, Any]
_PHASES: Final = ("compile", "cache", "launcher_build", "module_load", "autotune")


class Compiling:
    """Rows of `cost` and `variants`, by kernel."""

    def __init__(self, first: Trace, again: Trace) -> None:
        self._calls, self._again = _calls(first), _calls(again)

    def buckets(self, kernel: str) -> list[Row]:
        """One row per bucket: what its representative shapes compiled and tuned, first and from disk."""
        found: dict[str, Row] = {}
        for call, again in zip(self._calls, self._again, strict=False):
            if (call["kernel"], call["kind"]) != (kernel, "shape"):
                continue
            row = found.setdefault(call["bucket"], {"kernel": kernel, "bucket": call["bucket"], "shapes": 0,
                                   "served": "", "variants": 0, "candidates": 0, "cold_ns": 0, "disk_ns": 0,
                                   **{f"{phase}_ns": 0 for phase in _PHASES}})  # fmt: skip
            row["shapes"] += 1
            if call["served"] not in row["served"]:
                row["served"] = " or ".join(filter(None, (row["served"], call["served"])))
            row["variants"] += len(call["variants"])
            row["disk_ns"] += again["cold_ns"]
            for name in ("candidates", "cold_ns", *(f"{phase}_ns" for phase in _PHASES)):
                row[name] += call[name]
        return list(found.values())

    def variants(self, kernel: str) -> list[Row]:
        """One row per Triton function: its variants, the time of each stage, and the most that one needs."""
        found: dict[str, list[Row]] = {}
        for use in _variants(self._calls, kernel, "shape"):
            found.setdefault(use["kernel"], []).append(use)
        return [{"kernel": kernel, "function": function, "variants": len(uses), **_stages(uses), **_most(uses)}
                for function, uses in found.items()]  # fmt: skip

    def missed(self, kernel: str) -> int:
        """Variants of the first process that the second compiled again; it may choose other winners, and theirs."""
        made = {_identity(use) for use in _variants(self._calls, kernel)}
        return sum(not use["cache_hit"] and _identity(use) in made for use in _variants(self._again, kernel))

    def by_probe(self, kernel: str) -> list[int]:
        """Variants that each shape beside a hot one made new; the first may make the one that all others share."""
        return [len(call["variants"]) for call in self._calls if (call["kernel"], call["kind"]) == (kernel, "probe")]


def _variants(calls: list[Row], kernel: str, *kinds: str) -> list[Row]:
    """Variants that calls of a kernel made usable."""
    return [use for call in calls if call["kernel"] == kernel and (not kinds or call["kind"] in kinds)
            for use in call["variants"]]  # fmt: skip


def _identity(use: Row) -> tuple[str, str, str]:
    return use["function"], use["arguments"], use["options"]


def _stages(uses: list[Row]) -> Row:
    out: Row = {}
    for use in uses:
        for stage, ns in json.loads(use["stages"] or "{}").items():
            out[f"{stage}_ns"] = out.get(f"{stage}_ns", 0) + ns
    return out


def _most(uses: list[Row]) -> Row:
    return {name: max((use[name] or 0 for use in uses), default=None)
            for name in ("registers", "spills", "shared_bytes", "binary_bytes")}  # fmt: skip


def _calls(trace: Trace) -> list[Row]:
    """Calls in order: what each was, who served it, and what was cold for it."""
    made, candidates = trace.specializations.to_pylist(), trace.candidates.to_pylist()
    uses = [
        made[use["specialization"]] | use for use in trace.compiles.to_pylist() if use["specialization"] is not None
    ]
    return [_call(row, _within(row, uses), len(_within(row, candidates)))
            for row in trace.requests().payload["requests"]]  # fmt: skip


def _within(request: Row, rows: list[Row]) -> list[Row]:
    return [row for row in rows if 0 <= row["start_ns"] - request["start_ns"] < request["wall_ns"]]


def _call(request: Row, uses: list[Row], candidates: int) -> Row:
    kernel, kind, bucket = json.loads(request["name"])
    served = "fallback" if not request.get("launches") else "tuned" if candidates else "triton"
    phases = {f"{phase}_ns": request["phases"].get(phase, 0) for phase in _PHASES}
    return {"kernel": kernel, "kind": kind, "bucket": bucket, "served": served, "candidates": candidates, **phases,
            "variants": uses, "cold_ns": request["cold_tax_ns"]}  # fmt: skip
