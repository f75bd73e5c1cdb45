"""Triton's disk cache: cold, unwritable, slow, or not recorded."""

from __future__ import annotations

import json
from statistics import median
from typing import TYPE_CHECKING, Final

from tprof.analyze.findings.facts import MATTERS, Facts, counted
from tprof.analyze.result import few
from tprof.intervals import total

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.analyze.result import Row

_FEW: Final = 3  # look-ups below which a cold cache says nothing
_SLOW_NS: Final = 10_000_000  # a look-up on a local disk took 0.1 to 0.3 ms on the H200's machine
_FOLDER: Final = "TRITON_CACHE_DIR"
_KEEP: Final = "point TRITON_CACHE_DIR at a local directory that outlives the process and is baked into the image"


def cache_cold(facts: Facts) -> list[Row]:
    """Every look-up in Triton's disk cache missed."""
    gets = [s for s in facts.recorded("cache") if s["attrs"].get("op") == "get" and "hit" in s["attrs"]]
    if len(gets) < _FEW or any(s["attrs"]["hit"] for s in gets):
        return []
    why = f"{len(gets)} of {len(gets)} look-ups missed, as in a first run"
    return _cache(facts, "cache-cold", "Triton's disk cache held none of the kernels", why, _KEEP)


def cache_unwritable(facts: Facts) -> list[Row]:
    """Compiled kernels could not be stored."""
    failed = [s for s in facts.recorded("cache") if s["attrs"].get("op") == "put" and s["attrs"].get("error")]
    if not failed:
        return []
    why = f"{counted(len(failed), 'store')} failed: {failed[0]['attrs']['error']}"
    fix = "make TRITON_CACHE_DIR a directory that the process may write"
    return _cache(
        facts, "cache-unwritable", "compiled kernels could not be stored: they are compiled in every process", why, fix
    )


def _cache(facts: Facts, code: str, title: str, why: str, fix: str) -> list[Row]:
    """A finding that costs what was compiled."""
    missed = [c for c in facts.compiles if c["cache_hit"] is False]
    cost = facts.set_of((c["start_ns"], c["end_ns"]) for c in missed)
    told = {json.loads(said or "{}").get(_FOLDER) for said in facts.trace.processes["environment"].to_pylist()}
    where = f"; {_FOLDER} is {few(sorted(told - {None}))}" if told - {None} else ""
    if total(*cost) < MATTERS * facts.wall_ns:
        return []
    return [facts.finding(code, title, cost, "window", facts.wall_ns, why=why + where, fix=fix, count=len(missed))]


def cache_slow(facts: Facts) -> list[Row]:
    """Look-ups and stores take as long as on a network file system."""
    spans = facts.recorded("cache")
    cost = facts.set_of((s["start_ns"], s["end_ns"]) for s in spans)
    typical = median(s["end_ns"] - s["start_ns"] for s in spans) if len(spans) >= _FEW else 0
    if typical < _SLOW_NS or total(*cost) < MATTERS * facts.wall_ns:
        return []
    return [
        facts.finding(
            "cache-slow",
            "the disk cache is slow, as on a network file system",
            cost,
            "window",
            facts.wall_ns,
            why=f"the median of {len(spans):,} of its steps took {typical / 1e6:.0f} ms; of a local disk below 1 ms",
            fix="copy the cache to a local disk at start-up and point TRITON_CACHE_DIR there",
            basis="inferred",
            count=len(spans),
        )
    ]


def cache_unknown(facts: Facts) -> list[Row]:
    """Compile time in a trace that does not tell hits from misses."""
    if facts.cold["disk_hits"] is not None or facts.cold["compile_ns"] < max(MATTERS * facts.wall_ns, 1):
        return []
    return [
        facts.finding(
            "cache-unknown",
            "look-ups in the disk cache are not recorded",
            0,
            "window",
            facts.wall_ns,
            why="whether kernels were compiled or found on disk cannot be told from this file",
            fix="record with `tprof record` (or `tprof.trace()`): it writes every look-up with its result",
            basis="unattributed",
        )
    ]


RULES: Final[tuple[Callable[[Facts], list[Row]], ...]] = (
    cache_cold,
    cache_unwritable,
    cache_slow,
    cache_unknown,
)
