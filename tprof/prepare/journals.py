"""What recordings know of each compiled variant and each search: its calls, its cost, and how to make it again."""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tprof.errors import SourceError
from tprof.prepare.plan_file import RANGE
from tprof.read.run_journal import Journal, Span, is_run, journal_files, read_journal, read_launches
from tprof.read.run_tables import shape_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tprof.read.run_journal import Record

_MS: Final = 1_000_000
# Triton's key in memory ends in what the caller passed besides arguments; 3.2 closes a tuple after it.
_PASSED: Final = re.compile(r"(\{[^{}]*\})\)?$")


@dataclass
class Variant:
    """One specialization of one function in one process or, after merging, in all of them."""

    function: str
    source: str
    target: str
    triton: str
    arguments: list[list[Any]]
    options: list[list[Any]]
    hash: str | None
    cold_ns: int
    compiled: bool
    calls: Counter[str] = field(default_factory=Counter)  # shape -> work launches
    verdict: str = ""

    @property
    def identity(self) -> tuple[str, ...]:
        """What makes two variants of different processes the same."""
        how = json.dumps([self.arguments, self.options])
        return self.target, self.triton, self.function, self.source, how


@dataclass
class Tuned:
    """One search with its result, for a function as a variant has it."""

    function: str
    source: str
    target: str
    triton: str
    key_names: list[str]
    key: list[Any]
    config: dict[str, Any]
    timings_ns: dict[str, int]
    cold_ns: int


def journals(run: Path) -> list[Journal]:
    """The journals of a recording.

    Raises:
        SourceError: it is none of tprof's.
    """
    if not is_run(run):
        raise SourceError(run, "is no recording of tprof, and only these know how kernels are compiled: `tprof record`")
    return [read_journal(file) for file in journal_files(run)]


class Recorded:
    """One process.

    Args:
        journal: what it wrote.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self.triton = str(journal.process.get("versions", {}).get("triton"))
        self._kernels = {k["id"]: k for k in journal.records.get("kernel", [])}
        self._said = {s.get("span"): s for s in journal.records.get("specialization", [])}
        self.problems: Counter[str] = Counter()
        if any(span.name == RANGE for span in self.spans("range")):
            self.problems["prepared"] = 1  # its winners were restored: it shows no search

    def spans(self, kind: str) -> Iterator[Span]:
        """Spans of a kind that ended."""
        return (s for s in self._journal.spans.values() if s.kind == kind and s.end is not None)

    @cached_property
    def calls(self) -> dict[int, Counter[str]]:
        """Work launches of each kernel by shape: none that timed a candidate."""
        launches, _ = read_launches(self._journal.path)
        timed = np.isin(launches["span"], [s.id for s in self._journal.spans.values() if s.kind == "candidate"])
        counts = Counter(launches["shape"][~timed].tolist())
        found: dict[int, Counter[str]] = {}
        for shape in self._journal.records.get("shape", []):
            found.setdefault(shape["kernel"], Counter())[shape_text(shape)] += counts[shape["id"]]
        return found

    @cached_property
    def variants(self) -> list[Variant]:
        """Every variant that could be made again; `problems` counts the others."""
        found = [self._variant(jit) for jit in self.spans("jit") if jit.id in self._said and jit.attrs.get("kernel")]
        self.problems["not-recorded"] += found.count(None)
        return [variant for variant in found if variant is not None]

    def _variant(self, jit: Span) -> Variant | None:
        """A variant of the program's own; Inductor's are prepared by its cache and by running the model."""
        said, kernel = self._said[jit.id], self._kernels.get(jit.attrs["kernel"], {})
        passed, parts = _passed(said.get("key")), kernel.get("key_parts") or {}
        source = parts.get("fingerprint") or parts.get("source")
        if passed is None or source is None:
            return None
        target = kernel.get("target") or {}
        return Variant(
            function=said["function"],
            source=source,
            target=f"{target.get('backend')}:{target.get('arch')}",
            triton=self.triton,
            arguments=[_argument(a) for a in said.get("arguments") or ()],
            options=passed,
            hash=kernel.get("hash"),
            cold_ns=_ns(jit) + self._loads.get(kernel["id"], 0),
            compiled=not jit.attrs.get("cache_hit"),
            calls=Counter(self.calls.get(kernel["id"])),
        )

    @cached_property
    def _loads(self) -> dict[int, int]:
        """Time that each kernel's load took, ns."""
        return {s.attrs.get("kernel", 0): _ns(s) for s in self.spans("load")}

    def searches(self) -> list[Tuned]:
        """Every search with a winner; `problems` counts those whose key is not known exactly."""
        won = [s for s in self.spans("autotune") if "config" in s.attrs and s.attrs.get("origin") != "inductor"]
        made = {variant.function: variant for variant in self.variants}
        known = [s for s in won if "values" in s.attrs and s.attrs.get("function") in made]
        self.problems["not-recorded"] += len(won) - len(known)
        return [self._search(span, made[span.attrs["function"]]) for span in known]

    def _search(self, span: Span, of: Variant) -> Tuned:
        said, times = span.attrs, self._timings.get(span.id, {})
        what = said["key_names"], said["values"], said["config"]
        return Tuned(of.function, of.source, of.target, of.triton, *what, times, _ns(span))

    @cached_property
    def _timings(self) -> dict[int, dict[str, int]]:
        """Medians of the candidates that ran, ns, by search; Triton's cache of results may lie between the two."""
        found: dict[int, dict[str, int]] = {}
        spans = self._journal.spans
        for one in self.spans("candidate"):
            above = spans.get(one.parent)
            if above is not None and above.kind == "autotune_cache":
                above = spans.get(above.parent)
            median = next(iter(one.attrs.get("timings_ms") or ()), None)  # null where it did not run
            if above is not None and median is not None:
                found.setdefault(above.id, {})[one.attrs.get("text", "?")] = round(median * _MS)
        return found

    def requests(self) -> Counter[str]:
        """How often each name of a request came."""
        return Counter(s.name for s in self.spans("request"))

    def graphs(self) -> Counter[str]:
        """Time that each graph took to compile, ns, by Dynamo's compile id."""
        spans, found = self._journal.spans, Counter[str]()
        for span in self.spans("graph_compile"):
            above = spans.get(span.parent)
            if above is None or above.kind != "graph_compile":
                found[str(span.attrs.get("compile_id", span.name))] += _ns(span)
        return found


def merged(variants: Iterable[Variant]) -> list[Variant]:
    """Variants of all processes, each once: their calls summed, the longest cost."""
    found: dict[tuple[str, ...], Variant] = {}
    for variant in variants:
        known = found.setdefault(variant.identity, variant)
        if known is not variant:
            known.calls += variant.calls
            known.cold_ns = max(known.cold_ns, variant.cold_ns)
            known.compiled |= variant.compiled
            known.hash = known.hash or variant.hash
    return list(found.values())


def _ns(span: Span) -> int:
    return (span.end or span.start) - span.start


def _argument(said: Record) -> list[Any]:
    if said.get("type") == "constexpr":
        constant = {"constexpr": said.get("value")}
        return [said["name"], constant | ({"class": said["class"]} if "class" in said else {})]
    return [said["name"], said["type"], said.get("hints") or []]


def _passed(key: Any) -> list[list[Any]] | None:
    """What the caller passed besides arguments, in order, out of Triton's key; None where it cannot be told."""
    found = _PASSED.search(str(key))
    try:
        passed = ast.literal_eval(found[1]) if found else None
    except (ValueError, SyntaxError):
        return None
    return None if passed is None else [[name, value] for name, value in passed.items()]
