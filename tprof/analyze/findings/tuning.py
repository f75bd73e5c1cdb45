"""Autotuning: searches that are repeated, keys that grow without bound, rankings that show the tuner's kernels."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tprof.align.ranges import process_of
from tprof.analyze.findings.facts import MATTERS, Facts, counted
from tprof.analyze.result import few
from tprof.analyze.tunings import growing
from tprof.intervals import total

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tprof.analyze.result import Row
    from tprof.analyze.tunings import Tuning

_GROWS: Final = 3  # values of one key argument, each in a request of its own
_GROWS_UNSERVED: Final = 4  # the same where no requests are known: model sizes are keys as well
_PERSIST: Final = (
    "set TRITON_CACHE_AUTOTUNING=1 or @triton.autotune(..., cache_results=True) (Triton 3.4 on), or pin the winners"
)


def repeated(facts: Facts) -> list[Row]:
    """Searches that another process had done: for the same key, or with every candidate on disk already."""
    cached = {s["name"] for s in facts.recorded("autotune_cache")}
    told = [t for t in facts.tunings if t.key and t.kernel not in cached]
    by_key: dict[tuple[object, ...], list[Tuning]] = defaultdict(list)
    for t in told:
        by_key[t.kernel, tuple(t.key.items()), t.types].append(t)
    process = process_of(facts.trace)
    again = {id(t): t for same in by_key.values() for t in same if process[t.thread] != process[same[0].thread]}
    before = {id(t): t for t in told if id(t) not in again and _all_on_disk(facts, t)}
    mine = [*again.values(), *before.values()]
    cost = facts.set_of((t.start_ns, t.end_ns) for t in mine)
    if not mine or total(*cost) < MATTERS * facts.wall_ns:
        return []
    said = (
        (again, "repeated what another process of this trace had tuned"),
        (before, "found every candidate compiled on disk: an earlier process had tuned this"),
    )
    return [
        facts.finding(
            "tuning-repeated",
            f"{few(t.kernel for t in mine)} was tuned again although the result could be on disk",
            cost,
            "window",
            facts.wall_ns,
            kernel=_the_one(t.kernel for t in mine),
            why="; ".join(f"{counted(len(some), 'search')} {what}" for some, what in said if some),
            fix=_PERSIST,
            basis="inferred" if before else "recorded",
            count=len(mine),
        )
    ]


def _all_on_disk(facts: Facts, tuning: Tuning) -> bool:
    """Whether the search compiled nothing, and looked up something: an earlier process had these very candidates."""
    rows = {c["row"] for c in tuning.candidates}
    hits = [c["cache_hit"] for c in facts.compiles if c["candidate"] in rows]
    return bool(hits) and all(hits)


def _the_one(names: Iterable[str]) -> str | None:
    """The only name, else None."""
    found = set(names)
    return found.pop() if len(found) == 1 else None


def unbounded_keys(facts: Facts) -> list[Row]:
    """Arguments in an autotune key whose values keep coming with the requests."""
    return [
        row
        for kernel in dict.fromkeys(t.kernel for t in facts.tunings if t.key)
        for row in _unbounded(facts, [t for t in facts.tunings if t.kernel == kernel and t.key])
    ]


def _unbounded(facts: Facts, mine: list[Tuning]) -> list[Row]:
    """At most one finding for a kernel."""
    name, first = growing(mine)
    served = {t.request for t in first if t.request is not None}
    if len(served) < _GROWS if served else len(first) < _GROWS_UNSERVED:
        return []
    kernel, values = mine[0].kernel, [t.key[name] for t in first]
    others = [f'"{n}"' for n in mine[0].key if n != name]
    cost = facts.set_of((t.start_ns, t.end_ns) for t in first[1:])
    if total(*cost) < MATTERS * facts.wall_ns:
        return []
    return [
        facts.finding(
            "autotune-key-unbounded",
            f"{name} is in the autotune key of {kernel}: every new value is tuned anew",
            cost,
            "window",
            facts.wall_ns,
            kernel=kernel,
            why=f"{name} was {few(values, 5)}: {counted(len(first), 'search')} with the rest of the key the same",
            fix=f"key=[{', '.join(others)}], or round {name} up to a few buckets before it becomes part of the key",
            basis="inferred",
            count=len(first),
        )
    ]


def on_top(facts: Facts) -> list[Row]:
    """The busiest kernel is a benchmark's, not the workload's."""
    kernels = facts.kernels
    if not kernels or kernels[0]["purpose"] != "tuning":
        return []
    top, tuned = kernels[0], facts.cold["tuning_device_ns"]
    busy = sum(row["busy_ns"] for row in facts.devices)
    return [
        facts.finding(
            "tuning-tops-kernels",
            "most device time is tuning, not work",
            min(tuned, facts.wall_ns),
            "device's busy time",
            busy,
            kernel=top["name"],
            why=f"the top kernel's {counted(top['calls'], 'execution')} are an autotuner's repetitions and flushes",
            fix="read `tprof kernels` by purpose; pin the winners",
            basis="inferred",
            count=top["calls"],
        )
    ]


def keys_unknown(facts: Facts) -> list[Row]:
    """Tuning that was seen without its keys: whether it is repeated or grows cannot be told."""
    if not facts.tunings or any(t.key for t in facts.tunings) or facts.cold["autotune_ns"] < MATTERS * facts.wall_ns:
        return []
    return [
        facts.finding(
            "tuning-key-unknown",
            "autotune keys are not recorded",
            0,
            "window",
            facts.wall_ns,
            why="whether a search was repeated, or a key grows with the requests, cannot be told from this file",
            fix="record with `tprof record` (or `tprof.trace()`): it writes each search with its key and its winner",
            basis="unattributed",
        )
    ]


RULES: Final[tuple[Callable[[Facts], list[Row]], ...]] = (repeated, unbounded_keys, on_top, keys_unknown)
