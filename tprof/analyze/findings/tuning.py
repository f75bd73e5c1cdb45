"""Autotuning: searches that are repeated, keys that grow without bound, rankings that show the tuner's kernels."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tprof.align.ranges import process_of
from tprof.analyze.findings.facts import Facts, counted
from tprof.analyze.result import few
from tprof.analyze.tunings import growing

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tprof.analyze.result import Row
    from tprof.analyze.tunings import Tuning

_GROWS: Final = 3  # values of one key argument, each in a request of its own
_GROWS_UNSERVED: Final = 4  # the same where no requests are known: model sizes are keys as well
_PERSIST: Final = (
    "set TRITON_CACHE_AUTOTUNING=1 or @triton.autotune(..., cache_results=True) (Triton 3.4 on), or pin the winners"
)


def repeated(facts: Facts) -> Iterator[Row]:
    """Searches that another process had done: for the same key, or with every candidate on disk already."""
    cached = {s["name"] for s in facts.recorded("autotune_cache")}
    told = [t for t in facts.tunings if t.key and t.kernel not in cached]
    by_key: dict[tuple[object, ...], list[Tuning]] = defaultdict(list)
    for t in told:
        by_key[t.kernel, tuple(t.key.items()), t.types].append(t)
    process = process_of(facts.trace)
    again = [t for same in by_key.values() for t in same if process[t.thread] != process[same[0].thread]]
    before = [t for t in told if all(t is not other for other in again) and _all_on_disk(facts, t)]
    mine = [*again, *before]
    said = (
        (again, "repeated what another process of this trace had tuned"),
        (before, "found every candidate compiled on disk: an earlier process had tuned this"),
    )
    names = list(dict.fromkeys(t.kernel for t in mine))
    yield facts.finding(
        "tuning-repeated",
        f"{few(names)} was tuned again although the result could be on disk",
        facts.set_of((t.start_ns, t.end_ns) for t in mine),
        kernel=names[0] if len(names) == 1 else None,
        why="; ".join(f"{counted(len(some), 'search')} {what}" for some, what in said if some),
        fix=_PERSIST,
        basis="inferred" if before else "recorded",
        count=len(mine),
    )


def _all_on_disk(facts: Facts, tuning: Tuning) -> bool:
    """Whether the search compiled nothing, and looked up something: an earlier process had these very candidates."""
    rows = {c["row"] for c in tuning.candidates}
    hits = [c["cache_hit"] for c in facts.compiles if c["candidate"] in rows]
    return bool(hits) and all(hits)


def unbounded_keys(facts: Facts) -> Iterator[Row]:
    """Arguments in an autotune key whose values keep coming with the requests: of each kernel, one at most."""
    for kernel in dict.fromkeys(t.kernel for t in facts.tunings if t.key):
        mine = [t for t in facts.tunings if t.kernel == kernel and t.key]
        name, first = growing(mine)
        served = {t.request for t in first if t.request is not None}
        if len(served) < _GROWS if served else len(first) < _GROWS_UNSERVED:
            continue
        others = ", ".join(f'"{n}"' for n in mine[0].key if n != name)
        values = few((t.key[name] for t in first), 5)
        yield facts.finding(
            "autotune-key-unbounded",
            f"{name} is in the autotune key of {kernel}: every new value is tuned anew",
            facts.set_of((t.start_ns, t.end_ns) for t in first[1:]),
            kernel=kernel,
            why=f"{name} was {values}: {counted(len(first), 'search')} with the rest of the key the same",
            fix=f"key=[{others}], or round {name} up to a few buckets before it becomes part of the key",
            basis="inferred",
            count=len(first),
        )


def on_top(facts: Facts) -> Iterator[Row]:
    """The busiest kernel is a benchmark's, not the workload's."""
    top: Row = next(iter(facts.kernels), {})
    if top and top["purpose"] == "tuning":
        yield facts.finding(
            "tuning-tops-kernels",
            "most device time is tuning, not work",
            min(facts.cold["tuning_device_ns"], facts.wall_ns),
            of=("device's busy time", sum(row["busy_ns"] for row in facts.devices)),
            kernel=top["name"],
            why=f"the top kernel's {counted(top['calls'], 'execution')} are an autotuner's repetitions and flushes",
            fix="read `tprof kernels` by purpose; pin the winners",
            basis="inferred",
            count=top["calls"],
        )
