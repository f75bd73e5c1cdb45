"""`tprof batch`: many recordings, each on its own, in several processes; a bad one never stops the others."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tprof.cli import output, question, workers
from tprof.cli.options import Ask, Force, OutFormat, Phases, Ranges, Sources, Top
from tprof.errors import DONE, FAILED, TprofError, UsageError
from tprof.events import SCHEMA_VERSION

if TYPE_CHECKING:
    from tprof.analyze import Result

Out = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="OUT",
        help="Folder for the results: one folder per source, overall.json, failed.json.",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", "-j", min=1, envvar="TPROF_JOBS", help="Processes at a time; default: one per CPU."),
]


def batch(
    sources: Sources,
    out: Out,
    jobs: Jobs = None,
    format_: OutFormat = None,
    force: Force = False,
    range_: Ranges = None,
    phase: Phases = None,
    top: Top = None,
) -> int:
    """Analyse many recordings, each on its own: Parquet tables per source and one overall table."""
    ask = question.settled(Ask(sources, format_, None, force, None, tuple(range_ or ()), tuple(phase or ()), top=top))
    output.check(ask)
    paths = _inputs(sources)
    _prepare(out, force=force)
    slugs = workers.slugs(paths)
    tasks = [
        workers.Task(str(path), str(out / slug), ask.ranges, ask.phases)
        for path, slug in zip(paths, slugs, strict=True)
    ]
    with _progress(len(tasks)) as advance:
        outcomes = workers.run(tasks, jobs or os.cpu_count() or 1, advance)
    result = _overall(outcomes, slugs)
    _save(out / "overall.json", {"schema_version": SCHEMA_VERSION, **result.to_dict()})
    _save(out / "failed.json", {"schema_version": SCHEMA_VERSION, "failed": result.payload["failed"]})
    output.write(ask, result)
    if not result.payload["results"]:
        raise TprofError(
            f"none of {len(tasks)} sources could be analysed; {out / 'failed.json'} says why", exit_code=FAILED
        )
    return DONE


def _inputs(sources: list[str]) -> list[Path]:
    from tprof.read import expand  # noqa: PLC0415  keeps `--help` quick

    if not (paths := expand(sources)):
        raise UsageError(f"{', '.join(sources[:3])}: no trace lies there; name a file or a directory of traces")
    return paths


def _prepare(out: Path, *, force: bool) -> None:
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; name a folder")
    if out.is_dir() and any(out.iterdir()) and not force:
        raise UsageError(f"{out} is not empty; give --force to write into it")
    out.mkdir(parents=True, exist_ok=True)


def _overall(outcomes: list[workers.Outcome], slugs: list[str]) -> Result:
    """One row per source that was analysed; the others as warnings and under `failed`."""
    from tprof.analyze import Result  # noqa: PLC0415  as above
    from tprof.events import Note  # noqa: PLC0415  as above

    done = [
        {"source": o.source, "folder": slug, **o.row}
        for o, slug in zip(outcomes, slugs, strict=True)
        if o.row is not None
    ]
    failed = [{"source": o.source, "message": o.message, "exit_code": o.exit_code} for o in outcomes if o.row is None]
    notes = tuple(Note("unreadable-source", o.message, 1, o.source) for o in outcomes if o.row is None)
    sources = [source for o in outcomes for source in o.sources]
    return Result("batch", {"sources": done}, {"results": done, "failed": failed}, notes, sources)


def _save(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")


def _progress(total: int) -> Any:
    return question.counting(f"analysing {total} sources", total)
