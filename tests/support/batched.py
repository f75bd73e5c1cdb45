"""A batch in this process, without the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tprof.analyze import Options
from tprof.batch.folder import Folder
from tprof.batch.paths import find
from tprof.batch.run import run
from tprof.batch.work import Task, analyse

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from tprof.analyze import Result


class Silent:
    """Shows nothing."""

    def done(self, task: Task) -> None:
        """As above."""

    def look(self) -> None:
        """As above."""


def tasks(sources: Iterable[object], out: object, phases: Mapping[str, str] | None = None) -> list[Task]:
    """One for each source that is found."""
    return [Task(source, str(out), Options(), phases or {}) for source in find(map(str, sources))]


def batch(sources: Iterable[object], out: Path | str, phases: Mapping[str, str] | None = None) -> tuple[Folder, Result]:
    """Its folder, and its report."""
    folder = Folder(out)
    folder.open()
    return folder, run(tasks(sources, out, phases), folder, lambda todo: map(analyse, todo), Silent())
