"""Which recordings a batch is about, how large they are, and what a change to one is seen by."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tprof.errors import UsageError
from tprof.read import expand

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# Memory that reading takes, in sizes of the source (docs/benchmarks.md, rounded up; gzip makes traces 5 to 20 times
# smaller), and that of an interpreter with its libraries.
_FACTORS: Final = {".json": 1.2, ".json.gz": 20.0, ".sqlite": 6.0, ".sqlite.gz": 36.0}
_ELSE: Final = 8.0
_BARE: Final = 250 << 20


@dataclass(frozen=True)
class Source:
    """One recording.

    Attributes:
        path: absolute, so that it means the same to every worker.
        slug: its name in the result: the file's, and a digest of the whole path, so that it does not depend on others.
        size: bytes on disk.
        state: what a change is seen by: path, size, time of the last change.
    """

    path: str
    slug: str
    size: int
    state: tuple[str, int, int]

    @property
    def memory_bytes(self) -> int:
        """About what reading it takes."""
        name = self.path.lower()
        factor = next((f for end, f in _FACTORS.items() if name.endswith(end)), _ELSE)
        return int(_BARE + factor * self.size)


def find(given: Iterable[str]) -> list[Source]:
    """The recordings of a mix of files, directories, patterns and `@FILE` lists, each once.

    Raises:
        UsageError: a list cannot be read, or nothing is found.
    """
    named = list(given)
    paths = expand(path for text in named for path in _named(text))
    if not paths:
        raise UsageError(f"{', '.join(named[:3])}: no trace lies there; name a file or a directory of traces")
    return [_source(path) for path in paths]


def _named(text: str) -> Iterator[str]:
    if text.startswith("@"):
        for line in _lines(text[1:]):
            yield from _named(line)
    elif not os.path.lexists(text) and glob.has_magic(text):
        yield from sorted(glob.glob(text, recursive=True))  # noqa: PTH207  Path.glob takes no absolute pattern
    else:
        yield text


def _lines(path: str) -> list[str]:
    """The lines of a list, without comments and `@`: a list does not name lists."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise UsageError(f"{path}: cannot be read as a list of paths ({reason})") from error
    lines = (line.strip() for line in text.splitlines())
    return [line.lstrip("@") for line in lines if line and not line.startswith("#")]


def _source(path: Path) -> Source:
    place = os.path.abspath(path)  # noqa: PTH100  `resolve` would follow links, and links are names too
    digest = blake2b(place.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", path.name).strip(".-")[:80] or "source"
    size, changed = _measured(path)
    return Source(place, f"{name}-{digest}", size, (place, size, changed))


def _measured(path: Path) -> tuple[int, int]:
    """Size and time of the last change; of a folder, of all files in it. Zero where reading will say what is wrong."""
    try:
        states = [f.stat() for f in sorted(path.rglob("*")) if f.is_file()] if path.is_dir() else [path.stat()]
    except OSError:
        return 0, 0
    return sum(s.st_size for s in states), max((s.st_mtime_ns for s in states), default=0)
