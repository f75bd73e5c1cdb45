"""The plan: what is worth preparing, as a file that people read and `diff`. Standard library only: servers read it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from tprof.errors import TprofError

FORMAT: Final = "tprof-plan"
FORMAT_VERSION: Final = 1
RANGE: Final = "tprof.warmup"  # what a warm-up is called in a recording
WIDTH: Final = 110  # what fits on a line of the file stays on one

Pair = list[Any]  # [name, value], where the order is a part of Triton's key


@dataclass(frozen=True)
class Specialization:
    """One compiled variant.

    Attributes:
        arguments: in order, `[name, type, hints]` or `[name, {"constexpr": value, "class": what no JSON value is}]`.
        options: what the caller passed besides arguments, in the caller's order: Triton's key in memory has it so.
        hash: names its folder in Triton's disk cache, where recorded.
        calls: work launches.
        cold_ns: compile, or lookup, and load, as recorded: the longest.
        verdict: `pin` or `warm`.
        shapes: some of what it ran on, the most frequent first.
    """

    arguments: list[Pair]
    options: list[Pair]
    hash: str | None
    calls: int
    cold_ns: int
    verdict: str
    shapes: list[str]


@dataclass(frozen=True)
class Search:
    """One autotune key with its winner.

    Attributes:
        key_names: arguments that select a search.
        key: their values, then dtypes, as Triton's autotuner has them.
        config: the winner's names and values.
        timings_ns: medians of the candidates that ran, by their text.
        calls: work launches whose arguments have these values.
        cold_ns: the search, compiles included.
    """

    key_names: list[str]
    key: list[Any]
    config: dict[str, Any]
    timings_ns: dict[str, int]
    calls: int
    cold_ns: int


@dataclass(frozen=True)
class Kernel:
    """One `@triton.jit` function, for one architecture and one version of Triton.

    Attributes:
        function: module and qualified name; the program may have it under another module.
        source: hash of the function and all that it uses: tprof's, or Triton's where the recording has no other.
        target: `backend:architecture`.
        triton: version.
    """

    function: str
    source: str
    target: str
    triton: str
    specializations: list[Specialization]
    searches: list[Search]


@dataclass(frozen=True)
class Call:
    """A bucket, or else a request by its name, that compiled models should serve once before they are ready.

    Attributes:
        name: `set.bucket`, or the request's.
        values: sizes of the most frequent shape in the bucket.
        calls: how often it came.
    """

    name: str
    values: dict[str, int]
    calls: int


@dataclass(frozen=True)
class Plan:
    """What is worth preparing.

    Attributes:
        runs: names of the recordings.
        kernels: by target, version of Triton, function and source.
        calls: what `warmup(plan, call=…)` is to run, the most frequent first.
        graphs: what Dynamo compiled, by its compile id -> the longest time that took, ns.
        left_out: why -> how many variants are not in the plan.
    """

    runs: list[str]
    kernels: list[Kernel]
    calls: list[Call]
    graphs: dict[str, int]
    left_out: dict[str, int]

    def text(self) -> str:
        """The file's content."""
        return _pretty({"format": FORMAT, "format_version": FORMAT_VERSION, **asdict(self)}) + "\n"


def load(path: str | Path) -> Plan:
    """Read a plan.

    Raises:
        TprofError: it cannot be read, is no plan, is damaged, or a newer tprof wrote it.
    """
    if Path(path).exists() and not Path(path).is_file():
        raise TprofError(f"{path}: is no file; make a plan with `tprof plan`")
    try:
        said = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise TprofError(f"{path}: cannot be read ({error.strerror}); make one with `tprof plan`") from None
    except (ValueError, RecursionError):
        raise TprofError(f"{path}: is not complete JSON; make it anew with `tprof plan`") from None
    if not isinstance(said, dict) or said.get("format") != FORMAT:
        raise TprofError(f"{path}: is no plan of tprof; make one with `tprof plan`")
    if said.get("format_version") != FORMAT_VERSION:
        version = said.get("format_version")
        raise TprofError(f"{path}: has plan format {version!r}, this tprof reads {FORMAT_VERSION}; make it anew")
    try:
        return _plan(said)
    except (TypeError, ValueError, AttributeError) as error:
        raise TprofError(f"{path}: is damaged ({error}); make it anew with `tprof plan`") from None


def _plan(said: dict[str, Any]) -> Plan:
    kernels = [
        _made(Kernel, k | {"specializations": _all(Specialization, k.get("specializations")),
                           "searches": _all(Search, k.get("searches"))})
        for k in said.pop("kernels", None) or []
    ]  # fmt: skip
    return _made(Plan, said | {"kernels": kernels, "calls": _all(Call, said.get("calls"))})


def _all(kind: type[Any], said: Any) -> list[Any]:
    return [_made(kind, one) for one in said]


def _made(kind: type[Any], said: dict[str, Any]) -> Any:
    """A dataclass from what the file says; what a later tprof adds is not looked at."""
    return kind(**{f.name: said[f.name] for f in fields(kind) if f.name in said})


def _pretty(value: Any, depth: int = 0) -> str:
    """JSON in which whatever fits on a line stays on it; keys are sorted."""
    flat = json.dumps(value, sort_keys=True)
    if not value or not isinstance(value, dict | list) or len(flat) + depth <= WIDTH:
        return flat
    inner, outer = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(value, list):
        return f"[{inner}" + f",{inner}".join(_pretty(item, depth + 1) for item in value) + f"{outer}]"
    lines = (f"{json.dumps(key)}: {_pretty(item, depth + 1)}" for key, item in sorted(value.items()))
    return f"{{{inner}" + f",{inner}".join(lines) + f"{outer}}}"
