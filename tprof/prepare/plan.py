"""`tprof plan`: from recordings to what is worth preparing, under a budget."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import reduce
from itertools import chain, groupby
from operator import attrgetter, or_
from typing import TYPE_CHECKING, Any, Final

from tprof.analyze.shape_text import split_grid, values
from tprof.analyze.verdicts import is_hot, verdict
from tprof.buckets import OTHER, label
from tprof.prepare.journals import Recorded, Tuned, Variant, journals, merged
from tprof.prepare.plan_file import Call, Kernel, Plan, Search, Specialization

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tprof.buckets import BucketSet

SHAPES: Final = 3  # named per variant
CALLS: Final = 32  # most that a warm-up is asked to run


@dataclass(frozen=True)
class Limits:
    """What a warm-up may cost, and which shapes go together.

    Attributes:
        max_seconds: of compiles and loads one after another, as recorded.
        max_kernels: compiled variants.
        buckets: named groups of shapes, for `Plan.calls`.
    """

    max_seconds: float | None = None
    max_kernels: int | None = None
    buckets: tuple[BucketSet, ...] = ()


def make(runs: Sequence[Path], limits: Limits) -> Plan:
    """A plan from recordings.

    Args:
        runs: run directories.
        limits: what its warm-up may cost; the most called variants come first.

    Raises:
        SourceError: a directory is no recording of tprof.
    """
    recorded = [Recorded(journal) for run in runs for journal in journals(run)]
    searches = {(_place(t), json.dumps(t.key)): t for r in recorded for t in r.searches()}  # the last recording counts
    variants = merged(chain.from_iterable(r.variants for r in recorded))
    left_out = sum((r.problems for r in recorded), Counter[str]())
    kept = _within(limits, _hot(variants, {t.function for t in searches.values()}, left_out), left_out)
    kernels = [
        Kernel(*place, *_worth(list(group), [t for t in searches.values() if _place(t) == place]))
        for place, group in groupby(sorted(kept, key=_place), key=_place)
    ]
    graphs: Counter[str] = reduce(or_, (r.graphs() for r in recorded), Counter())
    return Plan(
        runs=sorted({run.name for run in runs}),
        kernels=kernels,
        calls=_calls(variants, sum((r.requests() for r in recorded), Counter[str]()), limits.buckets),
        graphs=dict(graphs),
        left_out=dict(left_out),
    )


_place: Final = attrgetter("function", "source", "target", "triton")


def _hot(variants: list[Variant], tuned: set[str], left_out: Counter[str]) -> list[Variant]:
    """Variants that come again and cost something; their verdict is set."""
    of_function: Counter[str] = Counter()
    for variant in variants:
        of_function[variant.function] += variant.calls.total()
    found = []
    for variant in variants:
        calls, whole = variant.calls.total(), of_function[variant.function]
        variant.verdict = verdict(calls, whole, variant.cold_ns, tuned=variant.function in tuned)
        if variant.verdict == "leave" and not variant.compiled and is_hot(calls, whole):
            # it lay on disk when it was recorded: what it costs where it does not is not known
            variant.verdict = "warm"
        if calls == 0:
            left_out["only-timed"] += 1
        elif variant.verdict in {"leave", "generic"}:
            left_out[variant.verdict] += 1
        else:
            found.append(variant)
    return found


def _within(limits: Limits, found: list[Variant], left_out: Counter[str]) -> list[Variant]:
    """The most called variants that the budget has room for."""
    room_ns = float("inf") if limits.max_seconds is None else limits.max_seconds * 1e9
    kept: list[Variant] = []
    for variant in sorted(found, key=lambda v: (-v.calls.total(), -v.cold_ns, v.identity)):
        full = limits.max_kernels is not None and len(kept) >= limits.max_kernels
        if full or variant.cold_ns > room_ns:
            left_out["over-budget"] += 1
            continue
        room_ns -= variant.cold_ns
        kept.append(variant)
    return kept


def _worth(variants: list[Variant], searches: list[Tuned]) -> tuple[list[Specialization], list[Search]]:
    """What a plan holds of one function, in an order that does not change."""
    found = [_search(tuned, variants) for tuned in searches]
    return (
        sorted((_specialization(v) for v in variants), key=lambda s: json.dumps([s.arguments, s.options])),
        sorted((s for s in found if s.calls), key=lambda s: json.dumps(s.key)),
    )


def _specialization(v: Variant) -> Specialization:
    shapes = [split_grid(shape)[1] for shape, n in v.calls.most_common(SHAPES) if n]
    return Specialization(v.arguments, v.options, v.hash, v.calls.total(), v.cold_ns, v.verdict, shapes)


def _search(tuned: Tuned, variants: list[Variant]) -> Search:
    served = sum(_served(tuned, variant) for variant in variants)
    return Search(tuned.key_names, tuned.key, tuned.config, tuned.timings_ns, served, tuned.cold_ns)


def _served(tuned: Tuned, variant: Variant) -> int:
    """Calls of a variant whose arguments have the values of a key, in the winner's configuration."""
    constant = {a[0]: a[1]["constexpr"] for a in variant.arguments if isinstance(a[1], dict)}
    known = constant | dict(map(tuple, variant.options))
    if any(name in known and known[name] != value for name, value in tuned.config.items()):
        return 0
    key = dict(zip(tuned.key_names, tuned.key, strict=False))
    return sum(n for shape, n in variant.calls.items() if _agree(key, constant | values(shape)))


def _agree(key: dict[str, Any], known: dict[str, Any]) -> bool:
    return all(known[name] == value for name, value in key.items() if name in known)


def _calls(variants: list[Variant], requests: Counter[str], sets: Sequence[BucketSet]) -> list[Call]:
    """Hot buckets with their most frequent shape; where none is declared, hot requests by name."""
    shapes: dict[str, Counter[str]] = {}
    for variant in variants:
        for shape, n in variant.calls.items():
            bucket = label(sets, variant.function.rsplit(".", 1)[-1], values(shape))
            if bucket is not None and not bucket.endswith(f".{OTHER}"):
                shapes.setdefault(bucket, Counter())[shape] += n
    found = [Call(name, values(s.most_common(1)[0][0]), s.total()) for name, s in shapes.items()]
    found = found or [Call(name, {}, n) for name, n in requests.items()]
    whole = sum(call.calls for call in found)
    hot = [call for call in found if is_hot(call.calls, whole)]
    return sorted(hot, key=lambda call: (-call.calls, call.name))[:CALLS]
