"""What the journals of recordings know of each compiled variant and each search: calls, cost, and how to make it again."""

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
from tprof.read.run_journal import Journal, Span, is_run, read_journal, read_launches
from tprof.read.run_tables import shape_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from tprof.read.run_journal import Record

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

    @property
    def identity(self) -> tuple[str, ...]:
        """What makes two variants of different processes the same."""
        how = json.dumps([self.arguments, self.options])
        return self.target, self.triton, self.function, self.source, how


@dataclass
class Tuned:
    """One search with its result."""

    function: str
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
    return [read_journal(file) for file in sorted(run.glob("process-*.jsonl"))]


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

    def spans(self, kind: str) -> Iterator[Span]:
        """Spans of a kind that ended."""
        return (s for s in self._journal.spans.values() if s.kind == kind and s.end is not None)

    @cached_property
    def calls(self) -> dict[int, Counter[str]]:
        """Work launches of each kernel by shape: none that timed a candidate."""
        launches, _ = read_launches(self._journal.path.with_suffix(".launches"))
        timed = np.isin(launches["span"], [s.id for s in self._journal.spans.values() if s.kind == "candidate"])
        counts = Counter(launches["shape"][~timed].tolist())
        found: dict[int, Counter[str]] = {}
        for shape in self._journal.records.get("shape", []):
            found.setdefault(shape["kernel"], Counter())[shape_text(shape)] += counts[shape["id"]]
        return found

    def variants(self) -> list[Variant]:
        """Every variant that could be made again; `problems` counts the others."""
        loads = {s.attrs.get("kernel"): _ns(s) for s in self.spans("load")}
        found = []
        for jit in self.spans("jit"):
            said, kernel = self._said.get(jit.id), self._kernels.get(jit.attrs.get("kernel"))
            if said is None or kernel is None:
                continue  # Inductor's, which its own cache and `call=` prepare; or one that was never made
            passed, source = _passed(said.get("key")), (kernel.get("key_parts") or {}).get("source")
            if passed is None or source is None:
                self.problems["not-recorded"] += 1
                continue
            target = kernel.get("target") or {}
            found.append(
                Variant(
                    said["function"], source, f"{target.get('backend')}:{target.get('arch')}", self.triton,
                    [_argument(a) for a in said.get("arguments") or ()], passed, kernel.get("hash"),
                    _ns(jit) + loads.get(kernel["id"], 0), not jit.attrs.get("cache_hit"),
                    Counter(self.calls.get(kernel["id"])),
                )
            )  # fmt: skip
        return found

    def searches(self) -> list[Tuned]:
        """Every search whose key and winner are known exactly."""
        candidates: dict[int, list[Span]] = {}
        for span in self.spans("candidate"):
            candidates.setdefault(span.parent, []).append(span)
        found = []
        for span in self.spans("autotune"):
            attrs = span.attrs
            if attrs.get("origin") == "inductor" or "config" not in attrs:
                continue
            if "values" not in attrs or "function" not in attrs:
                self.problems["not-recorded"] += 1
                continue
            below = [*candidates.get(span.id, []), *self._below(span, candidates)]
            timings = {c.attrs["text"]: round(c.attrs["timings_ms"][0] * 1e6) for c in below if c.attrs.get("timings_ms")}
            what = attrs["function"], attrs["key_names"], attrs["values"], attrs["config"]
            found.append(Tuned(*what, timings, _ns(span)))
        return found

    def _below(self, search: Span, candidates: dict[int, list[Span]]) -> list[Span]:
        """Candidates of a search that Triton's disk cache of results ran within its lookup."""
        inner = [s.id for s in self.spans("autotune_cache") if s.parent == search.id]
        return [c for parent in inner for c in candidates.get(parent, [])]

    def requests(self) -> Counter[str]:
        """How often each name of a request came."""
        return Counter(s.name for s in self.spans("request"))

    def graphs(self) -> Counter[str]:
        """Time in Dynamo and what it calls, by compiled function, ns; each instant counts once."""
        spans, found = self._journal.spans, Counter[str]()
        for span in self.spans("graph_compile"):
            above = spans.get(span.parent)
            if above is None or above.kind != "graph_compile":
                found[str(span.attrs.get("fn_name") or span.name)] += _ns(span)
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
