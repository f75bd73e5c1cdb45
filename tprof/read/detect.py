"""Which format a file has, by its content; names only decide where the content is unknown."""

from __future__ import annotations

import re
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

from tprof.errors import SourceError
from tprof.read.inflate import Source

if TYPE_CHECKING:
    from pathlib import Path

Format = Literal["torch", "nsight", "arrow", "report"]
SQLITE_MAGIC: Final = b"SQLite format 3\x00"
REPORTS: Final = (".nsys-rep", ".qdrep", ".qdstrm")
_OTHERS: Final = {
    b"PAR1": "is one Parquet file; of an Nsight export, give the folder that holds it",
    b"ARROW1": "is one Arrow file; of an Nsight export, give the folder that holds it",
    b"PK\x03\x04": "is a zip archive; unpack it and give the traces inside",
    b"\x28\xb5\x2f\xfd": "is compressed with zstd; decompress it first (zstd -d)",
    b"\xfd7zXZ": "is compressed with xz; decompress it first (xz -d)",
    b"\xff\xfe": "is UTF-16 text; save it as UTF-8",
    b"\xfe\xff": "is UTF-16 text; save it as UTF-8",
}
_STREAM: Final = b"\xff\xff\xff\xff"  # an Arrow stream: `nsys export --type arrow`
_SPACE: Final = b" \t\r\n"
_JSON: Final = re.compile(rb"\s*(\{|\[\s*[{\]])|\s*\[\s*\Z")  # an object, or a list of objects: `[project]` is TOML
_PEEK: Final = 1 << 16
_EVENTS: Final = re.compile(rb'"traceEvents"\s*:|\A\s*\[\s*(?:\{|\])|"ph"\s*:|"nodes"\s*:')


def detect(path: Path) -> Format:
    """The format of a source.

    Returns:
        `torch` (JSON), `nsight` (SQLite), `arrow` (an Nsight export as Arrow or Parquet) or `report` (an Nsight Systems
        report to be exported).

    Raises:
        SourceError: the file cannot be read, or is nothing that tprof reads.
    """
    with suppress(OSError):  # a name that is too long, a file where a folder should be: `peek` says so
        if is_export(path):
            return "arrow"
    start = peek(path)
    if start.startswith(_STREAM):
        return "arrow"
    if start.startswith(SQLITE_MAGIC):
        return "nsight"
    if _JSON.match(start):
        return "torch"
    if path.name.removesuffix(".gz").endswith(REPORTS):
        return "report"
    for magic, problem in _OTHERS.items():
        if start.startswith(magic):
            raise SourceError(path, problem)
    if not start.strip(_SPACE):
        raise SourceError(path, "is empty; was the recording finished?")
    raise SourceError(path, "is no trace that tprof knows: neither JSON nor SQLite nor an Nsight Systems report")


def peek(path: Path) -> bytes:
    """The first 64 KB of a file, inflated and without a byte-order mark.

    Raises:
        SourceError: there is no such file, it is no regular file, it may not be read, or it is empty.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise SourceError(path, "does not exist; check the path") from None
    except OSError as error:
        raise SourceError(path, f"cannot be read ({error.strerror}); check the path and its permissions") from None
    if stat.S_ISDIR(mode):
        raise SourceError(path, _directory(path))
    if not stat.S_ISREG(mode):
        raise SourceError(path, "is no regular file (a pipe, socket or device); save the trace to a file first")
    return _start(path)


def _start(path: Path) -> bytes:
    source = Source(path, str(path))
    out = b""
    for piece in source.pieces():
        out += piece
        if len(out) >= _PEEK:
            break
    if not out:
        kind = "is a gzip file that holds nothing" if path.stat().st_size else "is empty"
        raise SourceError(path, f"{kind}; was the recording finished?")
    return out[:_PEEK].removeprefix(b"\xef\xbb\xbf")


def _directory(path: Path) -> str:
    if next(path.glob("*.parquet"), None):
        return "holds Parquet files, but no export of Nsight Systems; give the traces that they were made of"
    return "is a directory; give the trace files in it"


def is_export(path: Path) -> bool:
    """Whether a folder is an Nsight export as Arrow or Parquet: it holds a table that every one has."""
    tables = (f"{table}{end}" for table in ("StringIds", "META_DATA_EXPORT") for end in (".parquet", ".arrow"))
    return any((path / name).is_file() for name in tables)


def in_use(path: Path) -> bool:
    """Whether a SQLite file has a log or journal beside it: what it says may change without a change to the file."""
    return any(path.with_name(path.name + end).exists() for end in ("-wal", "-journal"))


def is_trace(path: Path) -> bool:
    """Whether a file found in a directory looks like a trace: other JSON and SQLite files may lie next to traces."""
    try:
        found = detect(path)
    except SourceError:
        return path.name.endswith(REPORTS)
    if found != "torch":
        return True
    start = peek(path)
    return len(start) >= _PEEK or _EVENTS.search(start) is not None
