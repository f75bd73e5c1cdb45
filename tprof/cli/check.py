"""`tprof check`: gates for a pipeline. Exit code 3 when one trips, 4 when one cannot be judged."""

from __future__ import annotations

import inspect
import os
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tprof.cli import output, question
from tprof.cli.diff import repeats
from tprof.cli.options import Ask
from tprof.cli.settings import load_settings
from tprof.errors import CANNOT_JUDGE, DONE, GATE, UsageError
from tprof.events import PATHS

if TYPE_CHECKING:
    from tprof.analyze import Result, Row
    from tprof.analyze.check import Limits
    from tprof.facade import Trace

_SHARE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")
# Option and setting -> attribute of Limits where it is one, type of the option, metavar, help.
_GATES: Final[dict[str, tuple[str, Any, str, str]]] = {
    "max-cold-after-ready": (
        "cold_after_ready", int, "N", "First uses, candidates and graph compiles after `tprof.ready()`."),
    "max-compile-s": ("compile_s", float, "S", "Thread time spent on compiling."),
    "max-autotune-s": ("autotune_s", float, "S", "Thread time spent on tuning."),
    "max-cold-tax-p99-ms": ("cold_tax_p99_ms", float, "MS", "99th percentile of the requests' cold tax."),
    "max-cold-share": (
        "cold_share", str, "SHARE", "Part of the window that was cold (`5%` or 0.05): for batch jobs."),
    "max-idle": ("idle", str, "SHARE", "Idle part of the most idle device's span."),
    "expect-path": (
        "", list[str], "GLOB=PATH", "Kernels or operators that must run as triton, inductor, …; repeatable."),
    "expect-kernels": (
        "", list[str], "GLOB=N", "Kernels that each range or operator must launch; repeatable."),
    "against": ("", str, "BASE", "A recording, or a folder of repeats, to compare with."),
    "max-regression": ("", str, "SHARE", "Growth over BASE; default 5%."),
}  # fmt: skip


def _option(key: str) -> inspect.Parameter:
    _, kind, metavar, text = _GATES[key]
    asked = typer.Option(f"--{key}", metavar=metavar, help=text, min=0 if kind in {int, float} else None)
    place, name = inspect.Parameter.KEYWORD_ONLY, key.replace("-", "_")
    return inspect.Parameter(name, place, default=None, annotation=Annotated[kind | None, asked])


OPTIONS: Final = [_option(key) for key in _GATES]


def check(ask: Ask, **given: Any) -> int:
    """Gates for a pipeline, also from `[tool.tprof.check]`: exit code 3 if one trips, 4 if the data cannot tell."""
    settings = load_settings(Path.cwd())
    typed = {key: value for key, value in given.items() if value is not None and value != []}
    asked = _checked(settings.check) | _checked(typed)
    if not set(asked) - {"max-regression"}:
        raise UsageError(
            f"no gate is asked for; give one of {', '.join('--' + k for k in _GATES)}, or [tool.tprof.check]"
        )
    ask = question.settled(ask, settings=settings)
    limits = _limits(asked)
    share = _share("max-regression", asked.get("max-regression", "5%"))
    result = _judge(ask, question.load_trace(ask), limits, asked.get("against"), share)
    output.write(ask, result)
    _tell_github(result)
    return _code(result.tables["gates"])


def _judge(ask: Ask, trace: Trace, limits: Limits, base: str | None, share: float) -> Result:
    from tprof.analyze.check import check as judge  # noqa: PLC0415  keeps `--help` quick
    from tprof.analyze.diff import regressions  # noqa: PLC0415  as above

    options = question.options(ask, trace)
    more: list[Row] = []
    if base is not None:
        alone = trace.sources.num_rows == 1
        ours = [trace.attribution] if alone else [of for source in ask.sources for of in repeats(ask, source)]
        more = regressions(repeats(ask, str(base)), ours, replace(options, window=None), share)
    return judge(trace.attribution, options, limits, more)


def _code(rows: list[Row]) -> int:
    from tprof.analyze import check as gates  # noqa: PLC0415  as above

    return {gates.TRIPPED: GATE, gates.UNKNOWN: CANNOT_JUDGE}.get(gates.verdict(rows), DONE)


def _checked(said: dict[str, Any]) -> dict[str, Any]:
    """Settings with dashes; tables become what the options take."""
    found = {key.replace("_", "-"): value for key, value in said.items()}
    for key, value in found.items():
        if key not in _GATES:
            raise UsageError(f"tool.tprof.check has no gate {key!r}; known are {', '.join(_GATES)}")
        if isinstance(value, dict):
            found[key] = [f"{glob}={want}" for glob, want in value.items()]
    return found


def _limits(asked: dict[str, Any]) -> Limits:
    from tprof.analyze.check import Limits  # noqa: PLC0415  as above

    figures: dict[str, Any] = {
        to: _share(key, asked[key]) if kind is str else _number(key, asked[key], kind)
        for key, (to, kind, *_) in _GATES.items()
        if to and key in asked
    }
    paths = _pairs("expect-path", asked.get("expect-path", []))
    if unknown := set(paths.values()) - set(PATHS):
        raise UsageError(f"--expect-path: {unknown.pop()!r} is no path; known are {', '.join(PATHS)}")
    kernels = {
        k: _number("expect-kernels", v, int)
        for k, v in _pairs("expect-kernels", asked.get("expect-kernels", [])).items()
    }
    return Limits(**figures, paths=paths, kernels=kernels)


def _number(key: str, value: Any, kind: type) -> Any:
    try:
        return kind(value)
    except (TypeError, ValueError):
        raise UsageError(f"--{key}: {value!r} is no number") from None


def _share(key: str, value: Any) -> float:
    """`5%` or 0.05."""
    found = _SHARE.fullmatch(str(value).strip())
    if found is None:
        raise UsageError(f"--{key}: {value!r} is no share; write 5% or 0.05")
    return float(found[1]) / (100 if found[2] else 1)


def _pairs(key: str, given: list[str]) -> dict[str, str]:
    pairs = dict(text.rpartition("=")[::2] for text in given)
    if "" in pairs or "" in pairs.values():
        raise UsageError(f"--{key} {given[0]!r}: write GLOB=VALUE, for example 'rms_norm*=triton' or 'block=3'")
    return pairs


def _tell_github(result: Result) -> None:
    """Annotations and a summary of the step, where GitHub Actions runs this."""
    from tprof.present import annotations, markdown  # noqa: PLC0415  as above

    if os.environ.get("GITHUB_ACTIONS") == "true":
        sys.stderr.write(annotations.render(result))  # stdout is the result
    if path := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(path).open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.write(markdown.render(result))
