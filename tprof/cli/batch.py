"""`tprof batch`: many recordings, each on its own, here or on a cluster; a bad one never stops the others."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tprof.cli import output, question
from tprof.cli.options import Ask, OutFormat, Phases, Ranges, Top
from tprof.cli.settings import parse_phases
from tprof.errors import DONE, FAILED, TprofError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tprof.batch.run import Run, Watch
    from tprof.batch.work import Task

Paths = Annotated[
    list[str], typer.Argument(metavar="PATHS...", help="Traces, directories, patterns, or @FILE: a list of paths.")
]
Out = Annotated[
    Path, typer.Option("--output", "-o", metavar="OUT", help="Folder of the result; a batch in it is gone on with.")
]
Jobs = Annotated[
    int | None,
    typer.Option(
        "--jobs", "-j", min=1, envvar="TPROF_JOBS", help="Processes at a time; default: as processors and memory allow."
    ),
]
Again = Annotated[bool, typer.Option("--force", help="Analyse every source again, also the finished ones.")]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Work on this cluster of dask.distributed (extra `cluster`).")
]
SchedulerFile = Annotated[
    Path | None, typer.Option(metavar="FILE", help="The same, by the file that `dask scheduler` wrote.")
]


def batch(
    paths: Paths,
    out: Out,
    jobs: Jobs = None,
    format_: OutFormat = None,
    force: Again = False,
    range_: Ranges = None,
    phase: Phases = None,
    top: Top = None,
    scheduler: Scheduler = None,
    scheduler_file: SchedulerFile = None,
) -> int:
    """Analyse many recordings, each on its own: one Parquet data set, and one report that compares them."""
    from tprof.batch.folder import Folder  # noqa: PLC0415  keeps `--help` quick
    from tprof.batch.run import run  # noqa: PLC0415  as above

    if scheduler and scheduler_file:
        raise UsageError("--scheduler and --scheduler-file name the same thing; give one")
    ask = question.settled(Ask(paths, format_, ranges=tuple(range_ or ()), phases=tuple(phase or ()), top=top))
    question.spare_pandas()
    tasks, folder = _tasks(ask, out), Folder(out)
    folder.open()
    if force:
        folder.keep_only(())
    do = _cluster(scheduler, scheduler_file) if scheduler or scheduler_file else _local(jobs, tasks)
    with _watching(tasks, folder.working) as watch:
        result = run(tasks, folder, do, watch, ask.top)
    output.write(ask, result)
    if not result.payload["results"]:
        where = out / "failed.json"
        raise TprofError(f"none of {len(tasks)} sources could be analysed; {where} says why", exit_code=FAILED)
    return DONE


def _tasks(ask: Ask, out: Path) -> list[Task]:
    from tprof.analyze import Options  # noqa: PLC0415  as above
    from tprof.batch.paths import find  # noqa: PLC0415  as above
    from tprof.batch.work import Task  # noqa: PLC0415  as above

    options, phases = Options(ranges=ask.ranges, buckets=ask.buckets), parse_phases(ask.phases)
    return [Task(source, str(out.absolute()), options, phases) for source in find(ask.sources)]


def _local(jobs: int | None, tasks: list[Task]) -> Run:
    from tprof.batch import local  # noqa: PLC0415  as above

    fitting = jobs or local.fitting_jobs(tasks, local.processors(), local.available_bytes())
    return partial(local.run, jobs=fitting)


def _cluster(address: str | None, file: Path | None) -> Run:
    from tprof.batch import cluster  # noqa: PLC0415  as above

    return partial(cluster.run, address=address, file=file)


class _Silent:
    def done(self, task: Task) -> None:
        """Nobody looks."""

    def look(self) -> None:
        """Nobody looks."""


@contextmanager
def _watching(tasks: list[Task], working: Path) -> Iterator[Watch]:
    """A bar over all bytes with rate and time left, and one for each source that is being read; on a terminal only."""
    from rich.console import Console  # noqa: PLC0415  as above

    if not (console := Console(stderr=True)).is_terminal:
        yield _Silent()
        return
    from tprof.cli.batch_bars import Bars  # noqa: PLC0415  as above

    with Bars(console, tasks, working) as bars:
        yield bars
