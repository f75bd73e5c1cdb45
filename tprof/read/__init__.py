"""Foreign formats to a `Trace`: one module per format, no aggregation."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tprof.errors import SourceError
from tprof.read.detect import REPORTS, detect, is_export, is_trace
from tprof.read.inflate import inflated_file
from tprof.read.run_journal import is_run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tprof.events import Note
    from tprof.model import Trace

    Progress = Callable[[int, int], None] | None


# Endings that `nsys export` gives the forms of one capture, the fastest to read first.
_FORMS = ("_arwdir", "_pqtdir", ".arrows", ".sqlite", ".sqlite.gz")


def read_file(path: str | Path, progress: Progress = None) -> Trace:
    """Read one file or export, whatever its format; the trace is on its own clock and not yet aligned.

    Args:
        path: torch.profiler JSON, Nsight Systems SQLite (either may be gzip), Arrow or Parquet, or a report.
        progress: called with (done, total), in bytes or rows.

    Raises:
        SourceError: the file cannot be read, or is nothing that tprof reads.
    """
    path, source = Path(path), str(path)
    found = detect(path)
    if found == "torch":
        from tprof.read.torch_json import read_torch  # noqa: PLC0415  only the format at hand is imported

        return read_torch(path, source, progress)
    if found == "report":
        return _read_report(path, source, progress)
    from tprof.read.nsight import read_nsight  # noqa: PLC0415  as above

    return read_nsight(path, source, progress) if found == "arrow" else _read_sqlite(path, source, progress)


def read_source(path: str | Path, progress: Progress = None) -> list[Trace]:
    """Read one source as `expand` names it: a file, or a run directory with what other profilers wrote into it.

    Returns:
        One trace; of a run directory one per recorded process, then the others'.

    Raises:
        SourceError: as `read_file`.
    """
    from tprof.read.run import companions, read_run  # noqa: PLC0415  as above

    path = Path(path)
    try:
        if not is_run(path):
            return [read_file(path, progress)]
        return [*read_run(path, str(path), progress), *(read_file(file, progress) for file in companions(path))]
    except OSError as error:  # it changed or vanished while it was read
        raise SourceError(path, f"cannot be read ({error.strerror or error}); check the path and the disk") from error


def _read_sqlite(path: Path, source: str, progress: Progress) -> Trace:
    from tprof.read.nsight import read_nsight  # noqa: PLC0415  as above

    notes: list[Note] = []
    with inflated_file(path, source, notes) as plain:
        trace = read_nsight(plain, source, progress)
    return replace(trace, notes=(*notes, *trace.notes)) if notes else trace


def _read_report(path: Path, source: str, progress: Progress) -> Trace:
    from tprof.read.nsight import read_nsight  # noqa: PLC0415  as above
    from tprof.read.nsys_cli import export_report  # noqa: PLC0415  as above

    with inflated_file(path, source, []) as plain:
        exported = export_report(plain)
    try:
        return read_nsight(exported, source, progress)
    finally:
        shutil.rmtree(exported.parent)


def expand(paths: Iterable[str | Path]) -> list[Path]:
    """Trace files of a mix of files and directories.

    A directory gives the traces in it and below it, sorted; of a capture in several forms beside each other, that which
    reads fastest.
    A path that is no directory is kept as it is, also one that does not exist: reading says what is wrong with it.
    """
    out: list[Path] = []
    for path in map(Path, paths):
        whole = not path.is_dir() or is_run(path) or is_export(path)
        out += [path] if whole else sorted(_traces(path))
    return list(dict.fromkeys(out))


def _traces(top: Path) -> Iterator[Path]:
    seen: set[tuple[int, int]] = set()
    for folder, below, names in os.walk(top, followlinks=True):
        state = Path(folder).stat()
        if (state.st_dev, state.st_ino) in seen:  # a link back up
            below.clear()
            continue
        seen.add((state.st_dev, state.st_ino))
        below[:] = [name for name in below if not name.startswith(".")]
        if is_run(Path(folder)) or is_export(Path(folder)):
            below.clear()
            if not _better(Path(folder)):
                yield Path(folder)
            continue
        for name in names:
            path = Path(folder, name)
            if path.is_file() and not _better(path) and is_trace(path):
                yield path


def _better(path: Path) -> bool:
    """Whether a form of the same Nsight capture that reads faster lies beside it."""
    forms = [*_FORMS, *REPORTS]
    mine = next((end for end in forms if path.name.endswith(end)), None)
    if mine is None:
        return False
    faster = forms[: min(forms.index(mine), len(_FORMS))]
    return any(path.with_name(path.name.removesuffix(mine) + end).exists() for end in faster)
