"""A trace document as a stream: what stands before the events, the events block by block, what stands behind them.

A block is cut where one event ends and the next begins, and read as a whole: by the scanner where it pays and is sure
of the block, else by the decoder. A cut is never trusted: a block that does not decode goes through `torch_salvage`,
event by event.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tprof.errors import SourceError
from tprof.read.torch_ahead import Ahead, block
from tprof.read.torch_events import UNDECODABLE, Event, decode_events
from tprof.read.torch_repair import valid
from tprof.read.torch_salvage import BOUNDARY, Damage, Salvage, header
from tprof.read.torch_scan_columns import choose
from tprof.read.torch_scan_layout import PAD

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from tprof.read.inflate import Source
    from tprof.read.torch_ahead import Block, Part
    from tprof.read.torch_scan_columns import Scanner


BLOCK_BYTES: Final = 1 << 21
HEAD_LIMIT: Final = 64 << 20
EVENT_LIMIT: Final = 64 << 20  # bytes of one event; more would take several times as much memory
DUPLICATES_LIMIT: Final = 1 << 20
TAIL_LIMIT: Final = 16 << 20
BOM: Final = b"\xef\xbb\xbf"
_KINETO: Final = b"\n  },\n  {"
_WINDOW: Final = 1 << 16
_START: Final = re.compile(rb'(?<!\\)"traceEvents"\s*:\s*\[')
_BARE: Final = re.compile(rb"\s*\[")
_COMMA: Final = re.compile(rb"\s*,")
_OPEN: Final = b'{"traceEvents":['
_PADDING: Final = bytes(PAD)


class _Whole(msgspec.Struct, gc=False):
    traceEvents: list[Event]  # noqa: N815  the format's own spelling


_decode_whole = msgspec.json.Decoder(_Whole).decode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Document:
    """One trace document, read once from front to back.

    Args:
        source: the inflated bytes.

    Attributes:
        head: bytes before the events (`{"schemaVersion": 1, ...`); empty for a bare list.
        tail: bytes behind them (`, "traceName": ...}`).
        bare: the document is a list of events, not an object.
        damage: what was repaired or lost, and where.
    """

    def __init__(self, source: Source) -> None:
        self.head = self.tail = b""
        self.bare = False
        self.damage = Damage()
        self._source = source
        self._pieces = source.pieces()
        self._scanner: Scanner | None = None
        self._eof = False
        self._closed = False  # the list of events ended
        self.head_offset = 0
        self._offset = 0  # of the buffer's first byte in the inflated file

    def blocks(self) -> Iterator[Block]:
        """Yield the events, in file order; a block of them is to be used before the next one is asked for.

        Raises:
            SourceError: the file is not a Chrome trace.
        """
        rest = self._start()
        scanners = choose(self._source.expected())
        self._scanner = scanners[0] if scanners else None
        if len(scanners) > 1:
            with Ahead(scanners) as ahead:
                rest = yield from self._events(rest, ahead)
        else:
            rest = yield from self._events(rest)
        if not self._closed:
            self.damage.cut(self._offset, rest, bare=self.bare)
        elif not self.tail:
            self.tail = b"".join(self._fill(rest, TAIL_LIMIT))
        for _ in self._pieces:  # to the end, so that damage of the gzip stream is seen
            pass

    def _events(self, rest: bytes, ahead: Ahead | None = None) -> Generator[Block, None, bytes]:
        """Yield all events; return the bytes behind them."""
        while not self._closed:
            if ahead is not None and not self._eof:
                parts = [(yield from self._side_by_side(rest, ahead))]  # which has read on
            else:
                parts = self._fill(rest, max(BLOCK_BYTES, 2 * len(rest)))
            events, rest = self._step(parts)
            if events:
                yield events
            elif len(rest) > EVENT_LIMIT and not self._closed:
                rest = self._without(rest)
            if self._eof and not events and not self._closed:
                break
        return rest

    def _side_by_side(self, rest: bytes, ahead: Ahead) -> Generator[Block, None, bytes]:
        """Yield events of blocks that are scanned meanwhile; return the bytes from the first odd one on."""
        cut = 1
        while cut:
            parts = self._fill(rest, max(BLOCK_BYTES, 2 * len(rest)))
            cut = 0 if self._eof else _last_boundary(parts[-1])
            if cut:
                whole: list[Part] = [*parts[:-1], memoryview(parts[-1])[:cut]]
                rest = parts[-1][cut:]
                ahead.add(whole, _text(whole))
            else:
                rest = b"".join(parts)
            while ahead and (ahead.full or not cut):
                if (taken := ahead.take()) is None:
                    return ahead.back() + rest
                events, size = taken
                self._offset += size
                yield events
        return rest

    def _without(self, rest: bytes) -> bytes:
        """What can be read of more bytes than an event may have: it is lost, and the next one is looked for."""
        if rest.strip(b" \t\r\n,"):
            self.damage.add("too-long", self._offset, lost=True)
        self._offset += len(rest)
        return b""

    def _start(self) -> bytes:
        """Read up to the first event; the bytes from there on that were read already."""
        buffer = b"".join(self._fill(b"", _WINDOW))
        self._offset = len(BOM) if buffer.startswith(BOM) else 0
        buffer = buffer.removeprefix(BOM)
        while not (found := _BARE.match(buffer) or _START.search(buffer)):
            if self._eof or len(buffer) > HEAD_LIMIT or buffer.lstrip()[:1] not in (b"{", b""):
                raise SourceError(self._source.source, _not_a_trace(buffer))
            buffer = b"".join(self._fill(buffer, len(buffer) + max(_WINDOW, len(buffer))))
        self.bare = found.re is _BARE
        self.head = b"" if self.bare else buffer[: found.start()]
        self.head_offset = self._offset
        self._offset += found.end()
        return buffer[found.end() :]

    def _fill(self, first: bytes, size: int) -> list[bytes]:
        """`first` and what follows it, until `size` is reached or the file ends."""
        parts, total = [first], len(first)
        while total < size:
            piece = next(self._pieces, None)
            if piece is None:
                self._eof = True
                break
            parts.append(piece)
            total += len(piece)
        return parts

    def _step(self, parts: list[bytes]) -> tuple[Block, bytes]:
        """Events of the bytes read so far, and the bytes that they did not use."""
        if self._eof and (whole := self._last(b"".join(parts))) is not None:
            return whole, b""
        cut = _last_boundary(parts[-1])
        if cut and (events := self._decode([*parts[:-1], memoryview(parts[-1])[:cut]])) is not None:
            self._offset += sum(map(len, parts[:-1])) + cut
            return events, parts[-1][cut:]
        data = b"".join(parts)
        rescued = Salvage(data, self._offset, self.damage, eof=self._eof).run()
        self._offset += rescued.used
        self._closed = rescued.closed
        return rescued.events, data[rescued.used :]

    def _decode(self, parts: list[bytes | memoryview]) -> Block | None:
        """Events of a block that ends where one of them does; None where they are no JSON."""
        text = _text(parts)
        return block(self._scanner.read(text) if self._scanner else None, text)

    def _last(self, buffer: bytes) -> list[Event] | None:
        """Events of the last block, whose list is closed properly; None where it is not."""
        opening = b"[" if self.bare else _OPEN
        text = b"".join((opening, _without_comma(buffer)))
        try:
            if self.bare:
                events = decode_events(text)
            else:
                events = _decode_whole(text).traceEvents
                fields = _decode_fields(text)
                self.tail = msgspec.json.encode({key: raw for key, raw in fields.items() if key != "traceEvents"})
        except UNDECODABLE:
            return None
        self._closed = True
        if self._source.inflated <= DUPLICATES_LIMIT:
            self._duplicates(text)
        return events

    def _duplicates(self, text: bytes) -> None:
        """Count keys that occur twice in an object; the decoder keeps the last. Small files only: it costs as much."""

        def pairs(found: list[tuple[str, Any]]) -> None:
            for _ in range(len(found) - len(dict(found))):
                self.damage.add("duplicate-key", self.head_offset)

        with suppress(ValueError, RecursionError):  # it was decoded; json's limits are a little narrower
            json.loads(text.decode("utf-8", "replace"), object_pairs_hook=pairs)


def _text(parts: Sequence[Part]) -> bytes:
    """A block as a list of events, padded for the scanner."""
    return b"".join((b"[", _without_comma(parts[0]), *parts[1:], b"]", _PADDING))


def _without_comma(part: bytes | memoryview) -> memoryview:
    """A stretch that may start with the separator behind the previous event, without it."""
    found = _COMMA.match(part)
    return memoryview(part)[found.end() if found else 0 :]


def _last_boundary(buffer: bytes) -> int:
    """Position behind the closing brace of the last event that another one follows; 0 where none is seen."""
    at = buffer.rfind(_KINETO)
    if at > len(buffer) // 2:
        return at + 4
    window = _WINDOW
    while True:
        begin = max(0, len(buffer) - window)
        last = None
        for last in BOUNDARY.finditer(buffer, begin):  # noqa: B007  only the last is wanted
            pass
        if last or not begin:
            return last.start() + 1 if last else 0
        window *= 4


def _not_a_trace(head: bytes) -> str:
    start = head.lstrip()[:4096]
    if b'"nodes"' in start and b'"schema"' in start:
        return "is an execution trace (Chakra), not a Chrome trace; give the torch.profiler trace of the same run"
    if start[:1] not in (b"{", b"["):
        return "is no JSON; give a torch.profiler trace, an Nsight Systems export or a tprof recording"
    if start[:1] == b"{" and len(head) < HEAD_LIMIT and not valid(head):
        return "ends before its list of events begins, or is no JSON; was the recording finished?"
    return "has no traceEvents, so it is no Chrome trace; give what torch.profiler's export_chrome_trace wrote"


def fields(document: Document) -> dict[str, Any]:
    """What the document says besides its events; a part that is no JSON is repaired or left out."""
    if document.bare:
        return {}
    head = document.head.lstrip().removeprefix(b"{")
    tail = document.tail.strip().removeprefix(b"]").strip()
    inner = tail.removeprefix(b"{").removeprefix(b",").removesuffix(b"}")
    skipped = len(document.head) - len(head)
    return {**header(head, document.damage, document.head_offset + skipped), **header(inner, document.damage, -1)}
