"""The options that every verb shares, in one place: what is asked (`Ask`), and how a verb takes it."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, get_type_hints

import typer

from tprof.buckets import BucketSet

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class ClosedError(Exception):
    """The reader of stdout has gone."""


class Format(StrEnum):
    """How a result is written."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    MARKDOWN = "markdown"


Sources = Annotated[
    list[str],
    typer.Argument(
        metavar="SOURCES...",
        help="torch.profiler traces, Nsight Systems exports or reports, or directories of them; gzip is fine.",
    ),
]
OutFormat = Annotated[
    Format | None,
    typer.Option(
        "--format",
        "-f",
        envvar="TPROF_FORMAT",
        help="How to write the result; default: as the suffix of --output says, else a table.",
    ),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the result to FILE instead of stdout.")
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")]
Window = Annotated[
    str | None,
    typer.Option(
        metavar="A:B",
        help="Only this part: `1.5s:3s` or `200ms:` from the first event on, or `start_ns:end_ns` as in the JSON.",
    ),
]
Ranges = Annotated[
    list[str] | None,
    typer.Option(
        "--range",
        metavar="GLOB",
        help="Ranges that are requests; repeatable. Default: `request*`, else `ProfilerStep*`.",
    ),
]
Phases = Annotated[
    list[str] | None,
    typer.Option(
        "--phase",
        metavar="GLOB=PHASE",
        help="Count ranges of that name as a phase or purpose (`tune*=autotune`); repeatable.",
    ),
]
Devices = Annotated[
    list[str] | None,
    typer.Option("--device", metavar="GLOB", help="Only devices with this number or model name; repeatable."),
]
Ranks = Annotated[
    list[int] | None, typer.Option("--rank", metavar="N", help="Only this rank of a distributed job; repeatable.")
]
Top = Annotated[int | None, typer.Option(metavar="N", min=1, envvar="TPROF_TOP", help="Rows of a ranked table.")]
Kernels = Annotated[
    list[str] | None, typer.Option("--kernel", metavar="GLOB", help="Only kernels of this name; repeatable.")
]
TableName = Annotated[
    str | None,
    typer.Option("--table", metavar="NAME", help="Which table to write as CSV or Parquet; default: the first."),
]

NoCache = Annotated[bool, typer.Option("--no-cache", help="Read large sources anew, and do not keep them.")]
LowMemory = Annotated[
    bool,
    typer.Option(
        "--low-memory", envvar="TPROF_LOW_MEMORY", help="Keep large arrays in files: slower, for traces of any size."
    ),
]


@dataclass(frozen=True)
class Ask:
    """What was asked, as it was typed; `buckets` are the settings'."""

    sources: list[str] = field(default_factory=list)
    format: Format | None = None
    output: Path | None = None
    force: bool = False
    window: str | None = None
    ranges: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()
    devices: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    top: int | None = None
    table: str | None = None
    buckets: tuple[BucketSet, ...] = ()
    no_cache: bool = False
    low_memory: bool = False


SHARED: Final[dict[str, Any]] = {  # by attribute of Ask, in the order of the help
    "sources": Sources, "format": OutFormat, "output": Output, "force": Force, "window": Window, "ranges": Ranges,
    "phases": Phases, "devices": Devices, "ranks": Ranks, "top": Top, "table": TableName, "no_cache": NoCache,
    "low_memory": LowMemory,
}  # fmt: skip


def _ask(given: dict[str, Any]) -> Ask:
    """From what Typer gives for the shared options; it is taken out."""
    typed: dict[str, Any] = {}
    for name in SHARED:
        if (value := given.pop(name)) is not None:
            typed[name] = tuple(value) if isinstance(value, list) and name != "sources" else value
    return Ask(**typed)


def _parameter(name: str) -> inspect.Parameter:
    default = {"sources": inspect.Parameter.empty, "force": False, "no_cache": False, "low_memory": False}.get(name)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=SHARED[name])


def quiet(verb: Callable[..., int]) -> Callable[..., int]:
    """The verb, but a closed stdout is `ClosedError`: Typer would end the program with a code of its own."""

    @functools.wraps(verb)
    def command(*given: Any, **named: Any) -> int:
        try:
            return verb(*given, **named)
        except BrokenPipeError as error:
            raise ClosedError from error

    return command


def takes_ask(verb: Callable[..., int], more: Sequence[inspect.Parameter] = ()) -> Callable[..., int]:
    """A Typer command from a verb `(ask, *, own options)`: it shows the shared options, then the verb's own.

    Args:
        verb: the function.
        more: own options of a verb that takes them as `**given`.
    """
    own = inspect.signature(verb)
    hints = get_type_hints(verb, include_extras=True)
    keyword = inspect.Parameter.KEYWORD_ONLY
    extra = [p.replace(kind=keyword, annotation=hints[p.name]) for p in list(own.parameters.values())[1:]]
    options = [*map(_parameter, SHARED), *(more or extra)]

    @functools.wraps(verb)
    def command(**given: Any) -> int:
        return quiet(verb)(_ask(given), **given)

    # Typer reads the signature and the annotations, which a wrapper may set.
    del command.__wrapped__  # or the verb's own signature would be read
    command.__signature__ = own.replace(parameters=options)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in options}
    return command
