"""`tprof export`: a trace and what is said of it, for other programs."""

from __future__ import annotations

import gzip
import sys
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tprof import __version__
from tprof.cli import output, question
from tprof.cli.options import Ask, Force, Format, Phases, Ranges, Sources
from tprof.errors import DONE, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tprof.facade import Trace


class Kind(StrEnum):
    """What can be written."""

    PERFETTO = "perfetto"
    PARQUET = "parquet"
    CSV = "csv"
    HTML = "html"
    SPEEDSCOPE = "speedscope"


_FOLDERS: Final = (Kind.PARQUET, Kind.CSV)
_SUFFIXES: Final = {
    ".speedscope.json": Kind.SPEEDSCOPE,
    ".json": Kind.PERFETTO,
    ".json.gz": Kind.PERFETTO,
    ".html": Kind.HTML,
}
To = Annotated[
    Kind | None,
    typer.Option(
        "--to",
        help="Perfetto or Chrome JSON, a folder of Parquet or CSV tables, an HTML report, host phases for speedscope; "
        "default: as the suffix of --output says, else Parquet.",
    ),
]
Out = Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="The file, or the folder of tables.")]


def export(
    sources: Sources, out: Out, to: To = None, force: Force = False, range_: Ranges = None, phase: Phases = None
) -> int:
    """Write a trace for other programs: Perfetto, tables with a reference of their columns, a report, speedscope."""
    kind = to or next((k for suffix, k in _SUFFIXES.items() if out.name.endswith(suffix)), Kind.PARQUET)
    ask = Ask(sources, Format.TABLE, force=force, ranges=tuple(range_ or ()), phases=tuple(phase or ()))
    if kind not in _FOLDERS:
        output.check(Ask(output=out, force=force))
    elif out.exists() and not (out.is_dir() and (force or not any(out.iterdir()))):
        raise UsageError(f"{out} exists; name a new folder, or give --force to write into it")
    ask = question.settled(ask)
    trace = question.load_trace(ask)
    if kind is Kind.PERFETTO:
        _perfetto(trace, out)
    elif kind is Kind.SPEEDSCOPE:
        _speedscope(trace, out)
    elif kind is Kind.HTML:
        output.write_report({"": trace}, out, question.options(ask, trace))
    else:
        _tables(ask, trace, out, csv=kind is Kind.CSV)
    sys.stdout.write(f"wrote {out}\n")
    return DONE


@contextmanager
def _file(path: Path) -> Iterator[Any]:
    """A file that is there once it is whole."""
    part = path.with_name(f".{path.name}.part")
    try:
        with gzip.open(part, "wb", 5) if path.suffix == ".gz" else part.open("wb") as file:
            yield file
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _perfetto(trace: Trace, out: Path) -> None:
    from tprof.analyze import stretches  # noqa: PLC0415  keeps `--help` quick
    from tprof.present import perfetto  # noqa: PLC0415  as above

    of = trace.attribution
    phases = {"thread_phases": stretches.thread_phases(of), "device_phases": stretches.device_phases(of)}
    with _file(out) as file:
        perfetto.write(trace, phases, file)


def _speedscope(trace: Trace, out: Path) -> None:
    from tprof.analyze.stretches import thread_phases  # noqa: PLC0415  as above
    from tprof.present import speedscope  # noqa: PLC0415  as above

    with _file(out) as file:
        file.write(speedscope.render(trace, thread_phases(trace.attribution), __version__))


def _tables(ask: Ask, trace: Trace, out: Path, *, csv: bool) -> None:
    from tprof.analyze import stretches  # noqa: PLC0415  as above
    from tprof.batch.work import TABLES as RESULTS  # noqa: PLC0415  as above
    from tprof.events import TABLES  # noqa: PLC0415  as above
    from tprof.present import folder  # noqa: PLC0415  as above

    options = question.options(ask, trace)
    of = trace.attribution
    tables = {name: (getattr(trace, name), columns) for name, columns in TABLES.items()}
    tables |= {
        "thread_phases": (stretches.thread_phases(of), stretches.COLUMNS["thread_phases"]),
        "device_phases": (stretches.device_phases(of), stretches.COLUMNS["device_phases"]),
    }
    said = {name: getattr(trace, name)(options) for name in dict.fromkeys(method for method, _ in RESULTS.values())}
    # A table of the trace keeps its name: what is said of its rows gets one of its own.
    results = {f"{m}_{t}" if f in tables else f: (said[m], t) for f, (m, t) in RESULTS.items()}
    out.mkdir(parents=True, exist_ok=True)
    folder.write(out, tables, results, csv=csv)
