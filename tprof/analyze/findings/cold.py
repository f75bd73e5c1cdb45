"""Cold phases: those that requests waited for, and those outside of any request."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tprof.analyze.findings.facts import MATTERS, Facts, apart, counted, overlap
from tprof.analyze.result import few, weakest
from tprof.events import COLD_PHASES
from tprof.intervals import subtract, total

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.analyze.result import Row

_MOSTLY: Final = 0.5  # of a request's wall time: it was cold


@dataclass(frozen=True)
class _Kind:
    """Cold phases that have one cure."""

    code: str
    phases: tuple[str, ...]
    title: str
    cure: str
    tuning: bool = False  # waiting for a device that only tuned belongs here


_COMPILED: Final = "kernels were compiled"
_FETCHED: Final = "compiled kernels were fetched from disk"
_KINDS: Final = (
    _Kind(
        "compile-in-request",
        ("compile", "cache", "launcher_build", "module_load"),
        _COMPILED,
        "call every served shape once before `tprof.ready()`; keep TRITON_CACHE_DIR on a local disk, over restarts",
    ),
    _Kind(
        "tuning-in-request",
        ("autotune",),
        "an autotuner timed candidates",
        "tune before `tprof.ready()`; pin the hot shapes' winners, or set TRITON_CACHE_AUTOTUNING=1 (Triton 3.4 on)",
        tuning=True,
    ),
    _Kind(
        "graph-compile-in-request",
        ("graph_compile",),
        "a graph compiler ran",
        "compile before `tprof.ready()`; mark sizes that change dynamic; keep TORCHINDUCTOR_CACHE_DIR",
    ),
    _Kind(
        "graph-capture-in-request",
        ("graph_capture",),
        "CUDA graphs were captured",
        "capture before `tprof.ready()`, for the batch sizes that are served",
    ),
    _Kind(
        "init-in-request",
        ("init",),
        "a context or a library was initialised",
        "run one matrix product, and each library that is used, before `tprof.ready()`",
    ),
)
_OUTSIDE: Final = {
    "compile": (_COMPILED, "keep TRITON_CACHE_DIR on a local disk that outlives the process"),
    "cache": ("kernels were looked up on disk", "keep TRITON_CACHE_DIR on a local disk; a network file system is slow"),
    "launcher_build": ("a C compiler built launchers", "keep TRITON_CACHE_DIR: a launcher is built once per signature"),
    "module_load": ("kernels were loaded onto the device", "launch only what is served: each variant is loaded once"),
    "autotune": ("autotuners timed candidates", "pin the winners of the hot shapes, or set TRITON_CACHE_AUTOTUNING=1"),
    "graph_compile": ("a graph compiler ran", "mark changing sizes dynamic; keep TORCHINDUCTOR_CACHE_DIR"),
    "graph_capture": ("CUDA graphs were captured", "capture only the batch sizes that are served"),
    "init": ("contexts and libraries were initialised", "create them while weights are read"),
}


def cold_requests(facts: Facts) -> list[Row]:
    """Requests that were mostly cold, as one finding."""
    cold = [r for r in facts.requests if r["cold_tax_ns"] > _MOSTLY * r["wall_ns"]]
    if not cold:
        return []
    counting = apart(cold, "cold_tax_ns")
    worst, window = counting[0], _around(counting)
    many = f"{len(cold)} of {len(facts.requests)} requests were cold"
    return [
        facts.finding(
            "cold-request",
            f"{worst['name']} was cold" if len(cold) == 1 else many,
            sum(r["cold_tax_ns"] for r in counting),
            "requests' wall time",
            sum(r["wall_ns"] for r in counting),
            why=f"worst is {worst['name']}: {_parts(worst)}",
            fix="`tprof cold` with this window lists what was compiled, loaded and tuned, and for whom",
            basis=weakest(cold),
            count=len(cold),
            window=window,
        )
    ]


def in_requests(facts: Facts) -> list[Row]:
    """What requests waited for, by cure."""
    return [row for kind in _KINDS for row in _in_requests(facts, kind)]


def _in_requests(facts: Facts, kind: _Kind) -> list[Row]:
    spent = [_spent(r, kind) for r in facts.requests]
    hit = [r | {"spent": ns} for r, ns in zip(facts.requests, spent, strict=True) if ns > MATTERS * r["wall_ns"]]
    if not hit:
        return []
    counting = apart(hit, "spent")
    worst, kernel = counting[0], _costliest(facts, kind, counting)
    mostly = f"mostly for {kernel}; " if kernel else ""
    return [
        facts.finding(
            kind.code,
            f"{_title(facts, kind.title)} while {counted(len(hit), 'request')} waited",
            sum(r["spent"] for r in counting),
            "requests' wall time",
            sum(r["wall_ns"] for r in counting),
            kernel=kernel,
            why=f"{mostly}worst in {worst['name']}: {worst['spent'] / worst['wall_ns']:.0%} of its wall time",
            fix=kind.cure,
            basis=weakest(hit),
            count=len(hit),
            window=_around(counting),
        )
    ]


def _title(facts: Facts, title: str) -> str:
    """The title; of compiled kernels, what the trace knows of them."""
    if title != _COMPILED:
        return title
    if facts.cold["compile_includes"]:
        return "kernels were compiled or loaded"
    # Every kernel came from disk: then most of it is the first look-up of a process, which hashes Triton itself.
    return _FETCHED if facts.cold["disk_hits"] and not facts.cold["compiles"] else title


def _spent(request: Row, kind: _Kind) -> int:
    """Time of a request in the phases of a kind, ns."""
    waited = request["sync_by_device"]["tuning"] if kind.tuning else 0
    return sum(request["phases"].get(phase, 0) for phase in kind.phases) + waited


def _costliest(facts: Facts, kind: _Kind, requests: list[Row]) -> str | None:
    """Kernel for which the most was done in these requests."""
    inside = facts.during(requests)
    spans: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for span in facts.spans:
        if span["kernel"] and span["phase"] in kind.phases:
            spans[span["kernel"]].append((span["start_ns"], span["end_ns"]))
    spent = {kernel: total(*overlap(facts.set_of(stretches), inside)) for kernel, stretches in spans.items()}
    return max((k for k, ns in spent.items() if ns), key=lambda k: spent[k], default=None)


def _parts(row: Row) -> str:
    """Cold phases that made up more than a hundredth of a request, with their share."""
    cold = [(p, ns) for p, ns in row["phases"].items() if p in COLD_PHASES and ns > MATTERS * row["wall_ns"]]
    return ", ".join(f"{phase} {ns / row['wall_ns']:.0%}" for phase, ns in cold)


def _around(requests: list[Row]) -> tuple[int, int]:
    """From the first begin to the last end."""
    return min(r["start_ns"] for r in requests), max(r["start_ns"] + r["wall_ns"] for r in requests)


def outside_requests(facts: Facts) -> list[Row]:
    """Cold phases that took more than a hundredth of the window, without the requests that waited for them."""
    return [row for phase in COLD_PHASES for row in _outside(facts, phase)]


def _outside(facts: Facts, phase: str) -> list[Row]:
    mine = [s for s in facts.spans if s["phase"] == phase]
    waited = [r for r in facts.requests if r["phases"].get(phase, 0) > MATTERS * r["wall_ns"]]
    cost = subtract(
        facts.set_of((s["start_ns"], s["end_ns"]) for s in mine),
        facts.during(waited),
    )
    if total(*cost) < max(MATTERS * facts.wall_ns, 1):
        return []
    title, fix = _OUTSIDE[phase]
    return [
        facts.finding(
            f"cold-{phase}",
            _title(facts, title) + (" outside of requests" if facts.requests else ""),
            cost,
            "window",
            facts.wall_ns,
            why=_done(facts, phase, mine),
            fix=fix,
            basis=weakest(mine),
        )
    ]


def _done(facts: Facts, phase: str, spans: list[Row]) -> str | None:
    """What a phase was spent on, as far as that is known."""
    kernels = few(s["kernel"] for s in spans if s["kernel"])
    or_load = phase == "compile" and facts.cold["compile_includes"]
    said = [f"for {kernels}"] if kernels else []
    return "; ".join(said + (["compiling and loading cannot be told apart here"] if or_load else [])) or None


RULES: Final[tuple[Callable[[Facts], list[Row]], ...]] = (cold_requests, in_requests, outside_requests)
