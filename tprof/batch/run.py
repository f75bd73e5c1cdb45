"""A batch from its sources to its report: what is finished is skipped, what fails stops nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from tprof.batch.folder import as_json
from tprof.batch.report import OVERALL, report
from tprof.events import SCHEMA_VERSION
from tprof.present.tabular import json_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tprof.analyze import Result
    from tprof.batch.folder import Folder
    from tprof.batch.work import Outcome, Task

    Run = Callable[[Sequence[Task]], Iterator[Outcome | None]]


class Watch(Protocol):
    """Who shows how far it is."""

    def done(self, task: Task) -> None:
        """A source is finished, or failed."""

    def look(self) -> None:
        """Time has passed; called about twice a second."""


def run(tasks: Sequence[Task], folder: Folder, do: Run, watch: Watch, top: int | None = None) -> Result:
    """Do what is not yet done, then write and return the report.

    Args:
        tasks: one for each source.
        folder: of the batch, open.
        do: gives the outcomes of tasks as they come, and None from time to time.
        watch: is told.
        top: rows of a ranked table of the report.

    Raises:
        TprofError: `do` cannot go on; what was finished stays.
    """
    left = {task.source.slug: task for task in tasks if not _finished(folder, task)}
    finished = [task for task in tasks if task.source.slug not in left]
    folder.keep_only({task.source.slug for task in finished})
    for task in finished:
        watch.done(task)
    failed = []
    for outcome in do(list(left.values())) if left else ():
        if outcome is None:
            watch.look()
            continue
        failed += [outcome] if outcome.message else []
        watch.done(left[outcome.source.slug])
    folder.keep_only(folder.slugs())  # without what is of a source that failed half-way
    folder.settle()
    failed.sort(key=lambda o: o.source.path)
    result = report(folder, failed, top)
    folder.write("failed.json", as_json({"schema_version": SCHEMA_VERSION, "failed": result.payload["failed"]}))
    folder.write(OVERALL, (json_text(result) + "\n").encode())
    folder.close()
    return result


def _finished(folder: Folder, task: Task) -> bool:
    record = folder.finished(task.source.slug)
    return record is not None and record["state"] == task.state
