"""Bytes of a source, inflated where it is gzip, in blocks of bounded size.

A gzip file may have several members, may be cut, and may carry garbage behind its last member: whatever inflates is
handed on, and a note says what was lost.
"""

from __future__ import annotations

import shutil
import tempfile
import zlib
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol

from tprof.errors import SourceError
from tprof.events import Note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_codec: Any = zlib
try:  # ISA-L inflates 3 times as fast as zlib (1.5 GB: 0.5 s against 1.6 s); the results are the same
    from isal import isal_zlib

    _codec = isal_zlib
except ImportError:
    pass

GZIP_MAGIC: Final = b"\x1f\x8b"
READ_BYTES: Final = 1 << 15  # of a packed file: little is inflated again where it is damaged
PLAIN_BYTES: Final = 1 << 20
_GZIP_WINDOW: Final = 31  # zlib's window bits for "expect a gzip header"


class _Inflater(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


class Source:
    """A file as a stream of inflated bytes.

    Args:
        path: file to read.
        source: how notes and errors call it.
        progress: called with (bytes read, bytes in the file) of the file as it lies on disk.

    Attributes:
        notes: what was lost; complete once `pieces` is exhausted.
        inflated: bytes handed out so far.
    """

    def __init__(self, path: Path, source: str, progress: Callable[[int, int], None] | None = None) -> None:
        self.path = path
        self.source = source
        self.notes: list[Note] = []
        self.inflated = 0
        self._progress = progress
        self._read = 0
        self._size = path.stat().st_size

    def pieces(self) -> Iterator[bytes]:
        """Yield the content in pieces of at most some MB.

        Raises:
            SourceError: the file cannot be read.
        """
        try:
            with self.path.open("rb") as file:
                packed = file.read(2) == GZIP_MAGIC
                file.seek(0)
                for piece in self._gzip(file) if packed else self._chunks(file, PLAIN_BYTES):
                    self.inflated += len(piece)
                    yield piece
        except OSError as error:
            raise SourceError(self.source, f"cannot be read ({error.strerror}); check the file") from error

    def expected(self) -> int:
        """Bytes that the whole file will inflate to, as far as what was read tells."""
        return self.inflated * self._size // max(self._read, 1)

    def _chunks(self, file: BinaryIO, size: int = READ_BYTES) -> Iterator[bytes]:
        while data := file.read(size):
            self._read += len(data)
            if self._progress:
                self._progress(self._read, self._size)
            yield data

    def _gzip(self, file: BinaryIO) -> Iterator[bytes]:
        chunks = self._chunks(file)
        data = b""
        while True:
            data = data or next(chunks, b"")
            if not data:
                return
            if not data.startswith(GZIP_MAGIC[: len(data)]):
                self._trailing(data, chunks)
                return
            start = self._read - len(data)
            member: _Inflater = _codec.decompressobj(wbits=_GZIP_WINDOW)
            given = 0
            try:
                for piece in _member(member, data, chunks):
                    given += len(piece)
                    yield piece
            except (zlib.error, _codec.error):
                yield from _before_damage(self.path, start, given)
                self._note("cut-gzip", f"gzip data is damaged {self._read:,} bytes into the file; the rest is lost")
                return
            if not member.eof:
                self._note("cut-gzip", "gzip data ends early; what inflates was read, the rest is lost")
                return
            data = member.unused_data

    def _trailing(self, data: bytes, chunks: Iterator[bytes]) -> None:
        count = len(data) + sum(map(len, chunks))
        if data.strip(b"\0") or count > len(data):  # zero padding behind the last member is common and harmless
            self._note("trailing-garbage", f"{count:,} bytes behind the last gzip member were ignored", count)

    def _note(self, code: str, message: str, count: int = 1) -> None:
        self.notes.append(Note(code, message, count, self.source))


def _member(member: _Inflater, data: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Inflate one gzip member, beginning with `data`."""
    while data:
        if piece := member.decompress(data):
            yield piece
        if member.eof:
            return
        data = next(chunks, b"")


def _before_damage(path: Path, start: int, given: int) -> Iterator[bytes]:
    """What a member that begins at byte `start` inflates to before its damage, without the first `given` bytes.

    zlib loses the output of the call that fails, so the last stretch is inflated again in ever smaller bites.
    """
    member: _Inflater = _codec.decompressobj(wbits=_GZIP_WINDOW)
    out = 0
    with path.open("rb") as file:
        file.seek(start)
        try:
            while bite := file.read(1):
                piece = member.decompress(bite)
                out += len(piece)
                if out > given:
                    yield piece[-(out - given) :]
                    given = out
        except (zlib.error, _codec.error):
            return


@contextmanager
def inflated_file(path: Path, source: str, notes: list[Note]) -> Iterator[Path]:
    """A plain file with the content of `path`: itself, or a temporary file that is removed afterwards."""
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    if not packed:
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="tprof-", suffix=path.stem[-40:]) as plain:
        stream = Source(path, source)
        room = shutil.disk_usage(plain.name).free * 9 // 10  # a bomb must not take the disk from others
        for piece in stream.pieces():
            if stream.inflated > room:
                where = tempfile.gettempdir()
                problem = f"inflates to more than 90 % of the room in {where}; set TMPDIR to a larger disk"
                raise SourceError(source, problem)
            plain.write(piece)
        plain.flush()
        notes.extend(stream.notes)
        yield Path(plain.name)
