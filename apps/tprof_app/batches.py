"""Batches: what `tprof batch` wrote, read once until it is written again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tprof.batch import Folder, compare, saved
from tprof.errors import TprofError

if TYPE_CHECKING:
    from tprof.analyze import Result, Row

_KEPT: Final = 8


@dataclass(frozen=True)
class Batch:
    """One batch as it was at a time.

    Attributes:
        path: its folder.
        changed_ns: when its report was written.
    """

    path: str
    changed_ns: int

    @property
    def extent(self) -> tuple[int, int]:
        """A batch has no clock of its own."""
        return 0, 0

    @property
    def report(self) -> Result:
        """What compares its sources.

        Raises:
            TprofError: it is not finished.
        """
        return _report(self)

    def rows(self, table: str, slug: str) -> list[Row]:
        """A table of one source; nothing where it has none."""
        found = Folder(self.path).part(table, slug)
        return [] if found is None else found.to_pylist()


def opened(path: str) -> Batch:
    """The batch that lies there now."""
    file = Path(path) / "overall.json"
    return Batch(path, file.stat().st_mtime_ns if file.is_file() else 0)


def recordings(path: str) -> list[str]:
    """Paths of the sources that are still there."""
    try:
        rows = opened(path).report.tables["sources"]
    except TprofError:  # its own page says why
        return []
    return [row["source"] for row in rows if Path(row["source"]).exists()]


@lru_cache(maxsize=_KEPT)
def _report(batch: Batch) -> Result:
    return saved(Folder(batch.path))


@lru_cache(maxsize=_KEPT)
def changes(before: Batch, after: Batch) -> Result:
    """What `tprof diff` says of two batches."""
    return compare.diff(Folder(before.path), Folder(after.path))
