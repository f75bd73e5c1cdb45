"""The options that every verb shares, in one place: what is asked (`Ask`), and how a verb takes it."""

from __future__ import annotations

import functools
import inspect
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from tprof.buckets import BucketSet

if TYPE_CHECKING:
    from collections.abc import Callable


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


def ask(
    sources: Sources,
    format_: OutFormat = None,
    output: Output = None,
    force: Force = False,
    window: Window = None,
    range_: Ranges = None,
    phase: Phases = None,
    device: Devices = None,
    rank: Ranks = None,
    top: Top = None,
    table: TableName = None,
    no_cache: NoCache = False,
    low_memory: LowMemory = False,
) -> Ask:
    """The shared options; their names, types and help texts are those of the command line."""
    ranges, phases, devices, ranks = tuple(range_ or ()), tuple(phase or ()), tuple(device or ()), tuple(rank or ())
    shown = (sources, format_, output, force, window, ranges, phases, devices, ranks, top, table)
    return Ask(*shown, no_cache=no_cache, low_memory=low_memory)


def quiet(verb: Callable[..., int]) -> Callable[..., int]:
    """The verb, but a closed stdout is `ClosedError`: Typer would end the program with a code of its own."""

    @functools.wraps(verb)
    def command(*given: Any, **named: Any) -> int:
        try:
            return verb(*given, **named)
        except BrokenPipeError as error:
            raise ClosedError from error

    return command


def takes_ask(verb: Callable[..., int]) -> Callable[..., int]:
    """A Typer command from a verb `(ask, *, own options)`: it shows the shared options, then the verb's own."""
    own = inspect.signature(verb)
    extra = list(own.parameters.values())[1:]

    @functools.wraps(verb)
    def command(**given: Any) -> int:
        mine = {p.name: given.pop(p.name) for p in extra}
        return quiet(verb)(ask(**given), **mine)

    # Typer reads the signature and the annotations, which a wrapper may set.
    hints = get_type_hints(ask, include_extras=True) | get_type_hints(verb, include_extras=True)
    options = [
        p.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[p.name])
        for p in (*inspect.signature(ask).parameters.values(), *extra)
    ]
    del command.__wrapped__  # or the verb's own signature would be read
    command.__signature__ = own.replace(parameters=options)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in options}
    return command
