"""How far a batch is: one bar over the bytes of all sources, and one for each that is being read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from tprof.present.names import clean

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from tprof.batch.work import Task


class Bars:
    """Bars on a terminal, gone when done.

    Args:
        console: of stderr.
        tasks: one for each source.
        working: folder in which workers say how far they are.
    """

    def __init__(self, console: Console, tasks: list[Task], working: Path) -> None:
        text = TextColumn("{task.description}", markup=False)
        whole = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        self.whole = Progress(text, BarColumn(), *whole, console=console, transient=True)
        self.each = Progress(text, BarColumn(), TaskProgressColumn(), console=console, transient=True)
        self._working, self._left = working, {task.source.slug: task for task in tasks}
        self._count = len(tasks)
        self._rows: dict[str, TaskID] = {}
        self._total = self.whole.add_task("", total=sum(task.source.size for task in tasks))
        self._say()

    def __enter__(self) -> Self:
        """Show them."""
        from rich.console import Group  # noqa: PLC0415  only where they are shown
        from rich.live import Live  # noqa: PLC0415  as above

        self._live = Live(Group(self.whole, self.each), console=self.whole.console, transient=True)
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Take them away."""
        self._live.stop()

    def done(self, task: Task) -> None:
        """A source is finished, or failed."""
        self._left.pop(task.source.slug, None)
        if (row := self._rows.pop(task.source.slug, None)) is not None:
            self.each.remove_task(row)
        self.whole.advance(self._total, task.source.size)
        self._say()

    def look(self) -> None:
        """Read how far the workers are."""
        for file in self._working.glob("*.progress"):
            slug = file.name.removesuffix(".progress")
            done, _, total = _text(file).partition(" ")
            if slug in self._left and done.isdigit() and total.isdigit():
                if slug not in self._rows:
                    self._rows[slug] = self.each.add_task(clean(slug), total=None)
                self.each.update(self._rows[slug], completed=int(done), total=max(int(total), int(done)))

    def _say(self) -> None:
        self.whole.update(self._total, description=f"{self._count - len(self._left)} of {self._count} sources")


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):  # gone, or half written
        return ""
