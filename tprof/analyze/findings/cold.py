"""Cold phases: those that requests waited for, and those outside of any request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tprof.analyze.findings.facts import MATTERS, Facts, apart, counted, overlap
from tprof.analyze.result import few, weakest
from tprof.analyze.rows import grouped
from tprof.events import COLD_PHASES
from tprof.intervals import subtract, total

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tprof.analyze.result import Row

_MOSTLY: Final = 0.5  # of a request's wall time: it was cold
_COMPILED: Final = "kernels were compiled"
_FETCHED: Final = "compiled kernels were fetched from disk"
# What requests waited for -> cold phases that have one cure, what happened, and the cure.
_IN_REQUESTS: Final = {
    "compile": (
        ("compile", "cache", "launcher_build", "module_load"),
        _COMPILED,
        "call every served shape once before `tprof.ready()`; keep TRITON_CACHE_DIR on a local disk, over restarts",
    ),
    "tuning": (
        ("autotune",),
        "an autotuner timed candidates",
        "tune before `tprof.ready()`; pin the hot shapes' winners, or set TRITON_CACHE_AUTOTUNING=1 (Triton 3.4 on)",
    ),
    "graph-compile": (
        ("graph_compile",),
        "a graph compiler ran",
        "compile before `tprof.ready()`; mark sizes that change dynamic; keep TORCHINDUCTOR_CACHE_DIR",
    ),
    "graph-capture": (
        ("graph_capture",),
        "CUDA graphs were captured",
        "capture before `tprof.ready()`, for the batch sizes that are served",
    ),
    "init": (
        ("init",),
        "a context or a library was initialised",
        "run one matrix product, and each library that is used, before `tprof.ready()`",
    ),
}
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


def cold_requests(facts: Facts) -> Iterator[Row]:
    """Requests that were mostly cold, as one finding."""
    cold = [r | {"spent": r["cold_tax_ns"]} for r in facts.requests if r["cold_tax_ns"] > _MOSTLY * r["wall_ns"]]
    if cold:
        counting = apart(cold, "spent")
        worst = counting[0]
        many = f"{len(cold)} of {len(facts.requests)} requests were cold"
        title = f"{worst['name']} was cold" if len(cold) == 1 else many
        why = f"worst is {worst['name']}: {_parts(worst)}"
        fix = "`tprof cold` with this window lists what was compiled, loaded and tuned, and for whom"
        yield _waited(facts, "cold-request", title, cold, counting) | {"why": why, "fix": fix}


def in_requests(facts: Facts) -> Iterator[Row]:
    """What requests waited for, by cure."""
    for what, (phases, happened, cure) in _IN_REQUESTS.items():
        spent = [_spent(r, phases) for r in facts.requests]
        hit = [r | {"spent": ns} for r, ns in zip(facts.requests, spent, strict=True) if ns > MATTERS * r["wall_ns"]]
        if not hit:
            continue
        counting = apart(hit, "spent")
        worst, kernel = counting[0], _costliest(facts, phases, counting)
        mostly = f"mostly for {kernel}; " if kernel else ""
        why = f"{mostly}worst in {worst['name']}: {worst['spent'] / worst['wall_ns']:.0%} of its wall time"
        title = f"{_title(facts, happened)} while {counted(len(hit), 'request')} waited"
        row = _waited(facts, f"{what}-in-request", title, hit, counting)
        yield row | {"kernel": kernel, "why": why, "fix": cure}


def _waited(facts: Facts, code: str, title: str, hit: list[Row], counting: list[Row]) -> Row:
    """A finding on requests that waited; those of them that do not overlap are counting."""
    return facts.finding(
        code,
        title,
        sum(r["spent"] for r in counting),
        of=("requests' wall time", sum(r["wall_ns"] for r in counting)),
        basis=weakest(hit),
        count=len(hit),
        window=(min(r["start_ns"] for r in counting), max(r["start_ns"] + r["wall_ns"] for r in counting)),
    )


def _title(facts: Facts, title: str) -> str:
    """The title; of compiled kernels, what the trace knows of them."""
    if title != _COMPILED:
        return title
    if facts.cold["compile_includes"]:
        return "kernels were compiled or loaded"
    # Every kernel came from disk: then most of it is the first look-up of a process, which hashes Triton itself.
    return _FETCHED if facts.cold["disk_hits"] and not facts.cold["compiles"] else title


def _spent(request: Row, phases: tuple[str, ...]) -> int:
    """Time of a request in some phases, ns; waiting for a device that only tuned is tuning."""
    waited = request["sync_by_device"]["tuning"] if "autotune" in phases else 0
    return sum(request["phases"].get(phase, 0) for phase in phases) + waited


def _costliest(facts: Facts, phases: tuple[str, ...], requests: list[Row]) -> str | None:
    """Kernel for which the most was done in these requests."""
    inside = facts.during(requests)
    spans = grouped((span for span in facts.spans if span["kernel"] and span["phase"] in phases), "kernel")
    spent = {kernel: total(*overlap(facts.spent(own), inside)) for kernel, own in spans.items()}
    return max((k for k, ns in spent.items() if ns), key=lambda k: spent[k], default=None)


def _parts(row: Row) -> str:
    """Cold phases that made up more than a hundredth of a request, with their share."""
    cold = [(p, ns) for p, ns in row["phases"].items() if p in COLD_PHASES and ns > MATTERS * row["wall_ns"]]
    return ", ".join(f"{phase} {ns / row['wall_ns']:.0%}" for phase, ns in cold)


def outside_requests(facts: Facts) -> Iterator[Row]:
    """Cold phases that took more than a hundredth of the window, without the requests that waited for them."""
    for phase, mine in grouped(facts.spans, "phase").items():
        waited = [r for r in facts.requests if r["phases"].get(phase, 0) > MATTERS * r["wall_ns"]]
        title, fix = _OUTSIDE[phase]
        yield facts.finding(
            f"cold-{phase}",
            _title(facts, title) + (" outside of requests" if facts.requests else ""),
            subtract(facts.spent(mine), facts.during(waited)),
            why=_done(facts, phase, mine),
            fix=fix,
            basis=weakest(mine),
        )


def _done(facts: Facts, phase: str, spans: list[Row]) -> str | None:
    """What a phase was spent on, as far as that is known."""
    kernels = few(s["kernel"] for s in spans if s["kernel"])
    or_load = phase == "compile" and facts.cold["compile_includes"]
    said = [f"for {kernels}"] if kernels else []
    return "; ".join(said + (["compiling and loading cannot be told apart here"] if or_load else [])) or None
