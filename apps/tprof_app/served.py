"""What the operator of the app lets its users open: the sources named at its start, and what lies below one folder."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tprof.batch import is_batch
from tprof.errors import SourceError, TprofError
from tprof.read.detect import detect, is_trace
from tprof.read.inflate import Source
from tprof.read.run_journal import is_run

if TYPE_CHECKING:
    from collections.abc import Sequence

INFLATED_BYTES: Final = 8 << 30  # of one upload: a small gzip file may hold any number of bytes


@dataclass(frozen=True)
class Served:
    """What may be opened.

    Attributes:
        given: sources of the command line; the operator named them, so they are opened as they are.
        root: resolved folder whose recordings can be picked; None for none.
        reports: Nsight Systems reports may be picked and uploaded, which runs `nsys` on a stranger's file.
    """

    given: tuple[str, ...] = ()
    root: Path | None = None
    reports: bool = False

    @classmethod
    def parsed(cls, arguments: Sequence[str]) -> Served:
        """From the arguments of `main.py`, as `tprof app` writes them."""
        parser = ArgumentParser()
        parser.add_argument("--root", type=Path)
        parser.add_argument("--allow-nsys-rep", action="store_true")
        parser.add_argument("sources", nargs="*")
        said = parser.parse_args(arguments)
        return cls(tuple(said.sources), said.root.resolve() if said.root else None, said.allow_nsys_rep)

    def below(self, relative: str) -> Path:
        """The path of a name below the root.

        Raises:
            TprofError: there is no root, or the name leads out of it: `..`, an absolute path, a symbolic link.
        """
        if self.root is None:
            raise TprofError("this server offers no folder; start it with `tprof app --root DIR`")
        path = self.root / relative
        if ".." in Path(relative).parts or Path(relative).is_absolute() or path.resolve() != path:
            raise TprofError(f"{relative}: is not below the served folder; links and `..` are not followed")
        return path

    def listed(self, relative: str) -> tuple[list[str], list[str]]:
        """Names of the folders, and of the recordings, in a folder below the root; neither links nor hidden ones."""
        path = self.below(relative)
        return _listed(path, path.stat().st_mtime_ns)

    def checked(self, path: Path) -> Path:
        """A path that a user chose, if it may be read.

        Raises:
            TprofError: it is a folder of many things, holds links, or needs `nsys` which the operator did not allow.
        """
        if path.is_dir() and not (is_run(path) or is_batch(path)):
            raise SourceError(path.name, "is a folder; open the recordings in it")
        if path.is_dir() and _holds_links(path, path.stat().st_mtime_ns):
            raise SourceError(path.name, "holds symbolic links, which are not followed")
        if path.is_file() and not self.reports and detect(path) == "report":
            problem = "is an Nsight Systems report, and reading it runs nsys; export it (nsys export --type sqlite)"
            raise SourceError(path.name, f"{problem}, or start the app with --allow-nsys-rep")
        return path


@lru_cache(maxsize=64)
def _listed(folder: Path, _changed_ns: int) -> tuple[list[str], list[str]]:
    """Every page asks, and a look into each file takes a while: asked once until the folder changes."""
    paths = [p for p in sorted(folder.iterdir()) if not p.is_symlink() and not p.name.startswith(".")]
    recordings = [p.name for p in paths if is_run(p) or is_batch(p) or (p.is_file() and is_trace(p))]
    return [p.name for p in paths if p.is_dir() and p.name not in recordings], recordings


@lru_cache(maxsize=64)
def _holds_links(folder: Path, _changed_ns: int) -> bool:
    """In a run directory or a batch, which is two folders deep."""
    return any(p.is_symlink() for pattern in ("*", "*/*", "*/*/*") for p in folder.glob(pattern))


def bounded(path: Path, most: int = INFLATED_BYTES) -> None:
    """Inflate an upload once, to count.

    Raises:
        SourceError: it holds more than `most` bytes.
    """
    source = Source(path, path.name)
    for _ in source.pieces():
        if source.inflated > most:
            raise SourceError(path.name, f"is over {most >> 30} GiB when inflated; open it by path: `tprof app PATH`")
