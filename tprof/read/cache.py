"""Traces that were read and aligned, kept in the cache folder: a large file is read once.

An entry is one Arrow IPC file, not compressed: it is mapped, not read, so it opens at once, takes no memory of its own
and is shared between processes. (Of a torch.profiler file of 1.5 GB: 0.29 GB, written in 0.7 s, open in 10 ms. Parquet
with delta encoding and zstd: 0.03 GB, 2.0 s, 2.0 s.)

A file is known by its path, device, inode, size, times of change and a digest of samples of its content; one that
changed less than two seconds before it was read is not kept, for another change could leave all of that as it is.
Entries of other versions of tprof's own code are not looked at.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tprof import __version__
from tprof.errors import UsageError
from tprof.events import TABLES, Note
from tprof.machine import cache_folder
from tprof.model import Trace, table
from tprof.read.detect import in_use

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL_BYTES: Final = 2 << 20  # on disk; less is read again about as fast
SIZE: Final = "20GB"
_RACY_NS: Final = 2_000_000_000  # the coarsest clock of a common file system (FAT) ticks so slowly
_STALE_SECONDS: Final = 86_400  # an unfinished entry this old has lost its writer
_SAMPLES, _SAMPLE_BYTES = 64, 4096
_UNITS: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_log = logging.getLogger(__name__)


def _traces() -> Path:
    return cache_folder() / "traces"


def limit() -> int:
    """Bytes that the entries may take together, by `TPROF_CACHE_SIZE`.

    Raises:
        UsageError: the setting is no size.
    """
    said = os.environ.get("TPROF_CACHE_SIZE") or SIZE
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)B?", said.strip(), re.IGNORECASE)
    if not found:
        raise UsageError(f"TPROF_CACHE_SIZE={said!r}: write a size, for example 20GB or 500MB")
    return int(float(found[1]) * _UNITS[found[2].upper()])


@dataclass(frozen=True)
class Slot:
    """The place of one source in the cache, as the source is now.

    Attributes:
        path: the source.
        options: what else the trace depends on, as JSON.
        state: by which a change to the source is seen.
        settled: the source has not changed for long enough to be kept.
    """

    path: Path
    options: str
    state: tuple[object, ...]
    settled: bool

    @property
    def file(self) -> Path:
        """The entry; a source that changes, or another version of tprof, takes the place of the one before."""
        place = "\0".join((str(self.path.absolute()), str(self.path), self.options))
        return _traces() / f"{blake2b(place.encode('utf-8', 'surrogateescape'), digest_size=16).hexdigest()}.arrow"

    @property
    def key(self) -> str:
        """What an entry must say to be taken."""
        return json.dumps([_code(), self.options, *self.state])

    def load(self) -> Trace | None:
        """The trace as it was kept; None if it was not, or no longer fits the source."""
        try:
            state = self.file.stat()
            with pa.memory_map(str(self.file)) as stream:
                about = _about(stream)
                mine = state.st_uid == os.getuid() and not state.st_mode & 0o022
                trace = _trace(about, stream) if mine and about["key"] == self.key else None
            os.utime(self.file)  # what was not used for longest goes first
        except (OSError, pa.ArrowException, ValueError, KeyError) as problem:
            _log.debug("%s: not in the cache (%s)", self.path, problem)
            return None
        return trace

    def kept(self, trace: Trace) -> Trace | None:
        """Keep a trace that was read from the source, unless the source changed meanwhile.

        Returns:
            The trace as it lies in the cache, which takes no memory; None if it could not be kept.
        """
        most = limit()
        tables = {name: _compact(getattr(trace, name)) for name in TABLES}
        fits = sum(data.nbytes for data in tables.values()) <= most
        try:
            if fits and self.settled and _state(self.path) == (self.state, True):
                _replace(self, trace, tables)
                _make_room(most)
                return self.load()
        except (OSError, pa.ArrowException) as problem:
            _log.warning("%s was read but could not be kept for the next time (%s)", self.path, problem)
        return None


def find(path: Path, options: object = None) -> Slot | None:
    """The slot of a source; None for what is not kept: directories, small files, databases in use, `TPROF_CACHE=0`.

    Args:
        path: the source, as the user names it.
        options: what else the trace depends on, made of lists, dicts and strings.

    Raises:
        UsageError: `TPROF_CACHE_SIZE` is no size.
    """
    limit()
    if os.environ.get("TPROF_CACHE") in ("0", "off"):
        return None
    try:
        known = _state(path)
    except OSError:  # reading says what is wrong with it
        return None
    return Slot(path, json.dumps(options), *known) if known else None


def _state(path: Path) -> tuple[tuple[object, ...], bool] | None:
    """By what a change to a file is seen, and whether every further one will be; None for what is not kept."""
    if not path.is_file() or in_use(path):
        return None
    found = path.stat()
    if found.st_size < SMALL_BYTES:
        return None
    settled = time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) > _RACY_NS
    times = (found.st_mtime_ns, found.st_ctime_ns)
    return (found.st_dev, found.st_ino, found.st_size, *times, _sampled(path, found.st_size)), settled


def _sampled(path: Path, size: int) -> str:
    """Digest of pieces of a file: the first, the last, and some evenly between."""
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        for n in range(_SAMPLES):
            file.seek(max(size - _SAMPLE_BYTES, 0) * n // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE_BYTES))
    return digest.hexdigest()


@cache
def _code() -> str:
    """Digest of the code that makes a trace of a file: entries of another version are no use."""
    top = Path(__file__).parents[1]
    digest = blake2b(__version__.encode(), digest_size=16)
    for path in sorted([*top.glob("*.py"), *top.glob("read/*.py"), *top.glob("align/**/*.py")]):
        digest.update(path.read_bytes())
    return digest.hexdigest()


# ---- one entry: a stream without columns, whose metadata say what it is, and a stream of each table


def _compact(data: pa.Table) -> pa.Table:
    """A table without the columns that are all null."""
    data = data.unify_dictionaries()
    return data.select([c for c in data.column_names if data[c].null_count < len(data)])


def _replace(slot: Slot, trace: Trace, tables: dict[str, pa.Table]) -> None:
    """Write an entry beside the one that it replaces, then in one step put it there."""
    slot.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(".part", dir=slot.file.parent)
    try:
        _write(part, slot, trace, tables)
        os.fsync(descriptor)  # or a crash of the machine could leave the name with half of the content
        Path(part).replace(slot.file)
    finally:
        os.close(descriptor)
        Path(part).unlink(missing_ok=True)


def _write(part: str, slot: Slot, trace: Trace, tables: dict[str, pa.Table]) -> None:
    about = {
        "key": slot.key, "path": str(slot.path.absolute()), "rows": {name: len(data) for name, data in tables.items()},
        "epoch_ns": trace.epoch_ns, "epoch_error_ns": trace.epoch_error_ns,
        "notes": [note.to_dict() for note in trace.notes], "meta": dict(trace.meta),
    }  # fmt: skip
    with pa.OSFile(part, "wb") as sink:
        head = pa.schema([], metadata={"tprof": json.dumps(about)})
        for data in (head.empty_table(), *tables.values()):
            with pa.ipc.new_stream(sink, data.schema) as writer:
                writer.write_table(data)


def _about(stream: pa.NativeFile) -> dict[str, Any]:
    head = pa.ipc.open_stream(stream).read_all()
    return json.loads(head.schema.metadata[b"tprof"])


def _trace(about: dict[str, Any], stream: pa.NativeFile) -> Trace:
    tables = {}
    for name in TABLES:
        data = pa.ipc.open_stream(stream).read_all()
        tables[name] = table(name, {c: data[c] for c in data.column_names}, about["rows"][name])
    return Trace(
        **tables, epoch_ns=about["epoch_ns"], epoch_error_ns=about["epoch_error_ns"], meta=about["meta"],
        notes=tuple(Note(**note) for note in about["notes"]),
    )  # fmt: skip


# ---- the folder


@dataclass(frozen=True)
class Entry:
    """What lies in the cache: of which source, its size, and when it was last used (UTC, ns)."""

    file: Path
    source: str
    size: int
    used_ns: int


def entries() -> list[Entry]:
    """All entries, the last used first; one that cannot be read has no source."""
    found = [Entry(file, _source(file), state.st_size, state.st_mtime_ns) for file, state in _files("*.arrow")]
    return sorted(found, key=lambda entry: -entry.used_ns)


def clear() -> tuple[int, int]:
    """Remove all entries; how many they were, and how many bytes."""
    files = [*_files("*.arrow"), *_files("*.part")]
    for file, _ in files:
        file.unlink(missing_ok=True)
    return len(files), sum(state.st_size for _, state in files)


def _files(pattern: str) -> Iterator[tuple[Path, os.stat_result]]:
    for file in sorted(_traces().glob(pattern)):
        with suppress(OSError):  # another process may have removed it
            yield file, file.stat()


def _source(file: Path) -> str:
    try:
        with pa.memory_map(str(file)) as stream:
            return str(_about(stream)["path"])
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError):
        return ""


def _make_room(most: int) -> None:
    """Remove the entries that were not used for longest until the rest fits, and what crashed writers left."""
    taken = 0
    for file, state in sorted(_files("*.arrow"), key=lambda found: -found[1].st_mtime_ns):
        taken += state.st_size
        if taken > most:
            file.unlink(missing_ok=True)
    for file, state in _files("*.part"):
        if time.time() - state.st_mtime > _STALE_SECONDS:
            file.unlink(missing_ok=True)
