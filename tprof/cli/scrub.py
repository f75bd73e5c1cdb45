"""`tprof scrub`: copies of recordings that can be handed on."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from tprof.cli.options import Force, Sources
from tprof.errors import DONE, SourceError, UsageError
from tprof.present.names import clean

Out = Annotated[
    Path, typer.Option("--output", "-o", metavar="OUT", help="The copy; a folder for several sources, or for a run.")
]
_LEFT = (
    "file names without their folders, names of kernels and ranges, and GPU models are kept: look before you hand it on"
)


def scrub(sources: Sources, out: Out, force: Force = False) -> int:
    """Copy recordings without environment, users, hosts, folders, arguments and lists of processes."""
    from tprof.read import expand  # noqa: PLC0415  keeps `--help` quick
    from tprof.scrub import scrub as copy  # noqa: PLC0415  as above
    from tprof.scrub.words import Words  # noqa: PLC0415  as above

    paths, words = expand(sources), Words()
    failed: list[SourceError] = []
    for path, target in _targets(paths, out).items():
        _make_room(target, sources, force=force)
        try:
            left_out = copy(path, target, words)
        except SourceError as error:
            _remove(target)
            failed.append(error)
            continue
        sys.stdout.write(f"wrote {target}" + (f", without {', '.join(left_out)}" if left_out else "") + "\n")
    for other in failed[1:]:
        sys.stderr.write(f"tprof: {clean(other)}\n")
    if failed:
        raise failed[0]
    sys.stderr.write(f"tprof: {_LEFT}\n")
    return DONE


def _targets(paths: list[Path], out: Path) -> dict[Path, Path]:
    if not paths:
        raise UsageError("no trace lies there; name a file or a directory of traces")
    if len(paths) == 1:
        return {paths[0]: out}
    if len({path.name for path in paths}) < len(paths):
        raise UsageError("two sources have the same name; scrub them one at a time")
    out.mkdir(parents=True, exist_ok=True)
    return {path: out / path.name for path in paths}


def _make_room(target: Path, sources: list[str], *, force: bool) -> None:
    """Refuse to overwrite, unless asked to; a source never."""
    if any(target.resolve() == Path(source).resolve() for source in sources):
        raise UsageError(f"{target} is the source itself; name another file")
    if not target.absolute().parent.is_dir():
        raise UsageError(f"{target}: the folder {target.parent} does not exist; create it first")
    if not target.exists():
        return
    if not force:
        raise UsageError(f"{target} exists; give --force to overwrite it")
    _remove(target)


def _remove(target: Path) -> None:
    if target.is_dir():
        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
