"""A torch.profiler trace, rewritten as a stream: known fields around the events, and every text without names."""

from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tprof.errors import SourceError
from tprof.read.inflate import GZIP_MAGIC, Source
from tprof.read.torch_document import BOM
from tprof.read.torch_json import KNOWN_FIELDS
from tprof.read.torch_salvage import Damage, header
from tprof.scrub.words import Words, program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_START: Final = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
_CLOSED: Final = re.compile(rb'\]\s*(?=,\s*"|\}\s*\Z)')
_PROCESS: Final = re.compile(rb'("process_name"[^{}]*\{\s*"name"\s*:\s*)("[^"\\]*(?:\\.[^"\\]*)*")')
_HOST: Final = re.compile(rb'"host_name"\s*:\s*"([^"\\]+)"')
_PIECE: Final = 1 << 21
_HELD: Final = 1 << 22  # of the end, where the fields behind the events are


def scrub_torch(path: Path, out: Path, words: Words) -> None:
    """Write the copy; what the file's damage is stays as it was, but for damage of its gzip stream and its header.

    Raises:
        SourceError: the file cannot be read, or is no Chrome trace.
    """
    begins = False
    for piece in _pieces(path):
        begins = begins or bool(_START.search(piece)) or piece.removeprefix(BOM).lstrip()[:1] == b"["
        words.learn(piece)
        for name in _HOST.findall(piece):
            words.host(name.decode("utf-8", "replace"))
    if not begins:
        raise SourceError(path, "has no traceEvents, so it is no Chrome trace; nothing was written")
    with path.open("rb") as file:
        packed = file.read(2) == GZIP_MAGIC
    # mtime and name would be the original's
    with out.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, 0) if packed else raw as to:
        _copy(_pieces(path), to, words)


def _pieces(path: Path) -> Iterator[bytes]:
    """The file in stretches of about 2 MB that end behind a brace: no name is cut in two there."""
    parts: list[bytes] = []
    size = 0
    for piece in Source(path, str(path)).pieces():
        parts.append(piece)
        size += len(piece)
        if size > _PIECE and b"}" in piece:
            held = b"".join(parts)
            cut = held.rfind(b"}") + 1
            yield held[:cut]
            parts, size = [held[cut:]], len(held) - cut
    yield b"".join(parts)


def _copy(pieces: Iterator[bytes], to: Any, words: Words) -> None:
    held, begun = b"", False
    for piece in pieces:
        held += piece
        if not begun and (found := _START.search(held)):
            to.write(_before(held[: found.start()], words) + found[0])
            held, begun = held[found.end() :], True
        begun = begun or held.lstrip()[:1] == b"["
        if begun and (cut := held.rfind(b"}", 0, -_HELD) + 1):
            to.write(_events(held[:cut], words))
            held = held[cut:]
    at, fields = _behind(held)
    to.write(_events(held[:at], words))
    if fields is not None:
        to.write(b"".join(b", " + field for field in _fields(fields, words)) + b"}" + _lines(held[at:]))


def _events(data: bytes, words: Words) -> bytes:
    """Events without names; a process keeps the name of its program."""
    return words.data(_PROCESS.sub(_program, data))


def _program(found: re.Match[bytes]) -> bytes:
    try:
        name = json.loads(found[2])
    except ValueError:  # no JSON: nothing of it is kept
        name = ""
    return found[1] + json.dumps(program(name)).encode()


def _before(head: bytes, words: Words) -> bytes:
    """The fields before the events that are known."""
    said = header(head.removeprefix(BOM).lstrip().removeprefix(b"{"), Damage(), 0)
    return b"{" + b"".join(field + b", " for field in _fields(said, words)) + _lines(head)


def _behind(data: bytes) -> tuple[int, dict[str, Any] | None]:
    """Where the list of events has ended, and the fields behind it; the whole and None where it never ends."""
    for found in _CLOSED.finditer(data):
        rest = data[found.end() :].lstrip().removeprefix(b",")
        try:
            return found.start() + 1, msgspec.json.decode(b"{" + rest, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return len(data), None


def _fields(said: dict[str, Any], words: Words) -> Iterator[bytes]:
    for key, value in said.items():
        if key == "host_name" and isinstance(value, str):
            yield f'"host_name": {json.dumps(words.host(value))}'.encode()
        elif key in KNOWN_FIELDS:
            yield f'"{key}": '.encode() + words.data(json.dumps(value).encode())


def _lines(data: bytes) -> bytes:
    """As many lines as there were: warnings name them."""
    return b"\n" * data.count(b"\n")
