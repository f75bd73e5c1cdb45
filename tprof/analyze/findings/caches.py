"""Triton's disk cache: cold, unwritable, or slow."""

from __future__ import annotations

import json
from statistics import median
from typing import TYPE_CHECKING, Final

from tprof.analyze.findings.facts import Facts, counted
from tprof.analyze.result import few

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tprof.analyze.result import Row

_FEW: Final = 3  # look-ups below which a cold cache says nothing
_SLOW_NS: Final = 10_000_000  # a look-up on a local disk took 0.1 to 0.3 ms on the H200's machine
_FOLDER: Final = "TRITON_CACHE_DIR"
_KEEP: Final = "point TRITON_CACHE_DIR at a local directory that outlives the process and is baked into the image"


def cache_cold(facts: Facts) -> Iterator[Row]:
    """Every look-up in Triton's disk cache missed."""
    gets = [s for s in facts.recorded("cache") if s["attrs"].get("op") == "get" and "hit" in s["attrs"]]
    if len(gets) >= _FEW and not any(s["attrs"]["hit"] for s in gets):
        why = f"{len(gets)} of {len(gets)} look-ups missed, as in a first run"
        yield _cache(facts, "cache-cold", "Triton's disk cache held none of the kernels", why, _KEEP)


def cache_unwritable(facts: Facts) -> Iterator[Row]:
    """Compiled kernels could not be stored."""
    failed = [s for s in facts.recorded("cache") if s["attrs"].get("op") == "put" and s["attrs"].get("error")]
    if failed:
        title = "compiled kernels could not be stored: they are compiled in every process"
        why = f"{counted(len(failed), 'store')} failed: {failed[0]['attrs']['error']}"
        yield _cache(
            facts, "cache-unwritable", title, why, "make TRITON_CACHE_DIR a directory that the process may write"
        )


def _cache(facts: Facts, code: str, title: str, why: str, fix: str) -> Row:
    """A finding that costs what was compiled."""
    missed = [c for c in facts.compiles if c["cache_hit"] is False]
    told = {json.loads(said or "{}").get(_FOLDER) for said in facts.trace.processes["environment"].to_pylist()} - {None}
    where = f"; {_FOLDER} is {few(sorted(told))}" if told else ""
    return facts.finding(code, title, facts.spent(missed), why=why + where, fix=fix, count=len(missed))


def cache_slow(facts: Facts) -> Iterator[Row]:
    """Look-ups and stores take as long as on a network file system."""
    spans = facts.recorded("cache")
    typical = median(s["end_ns"] - s["start_ns"] for s in spans) if len(spans) >= _FEW else 0
    if typical >= _SLOW_NS:
        yield facts.finding(
            "cache-slow",
            "the disk cache is slow, as on a network file system",
            facts.spent(spans),
            why=f"the median of {len(spans):,} of its steps took {typical / 1e6:.0f} ms; of a local disk below 1 ms",
            fix="copy the cache to a local disk at start-up and point TRITON_CACHE_DIR there",
            basis="inferred",
            count=len(spans),
        )
