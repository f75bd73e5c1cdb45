"""Whole events out of JSON that is not valid: one at a time, repaired where the damage is of a known kind."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any, Final

import msgspec

from tprof.read.torch_events import UNDECODABLE, Event, decode_events, loosen
from tprof.read.torch_repair import repair

STRETCH: Final = 1 << 16  # bytes that are tried together before their events are taken one by one
TRIES: Final = 8  # closing braces tried as the end of one event
_KEY: Final = rb'"?(?:ph|name|cat|pid|tid|ts|id|args|dur|bp|s|cname)"?\s*:'
# The closing brace of an event that another one follows.
BOUNDARY: Final = re.compile(rb"\}(?=\s*,?\s*\{\s*" + _KEY + rb")")
_END: Final = re.compile(rb"\}(?=\s*,?\s*\{\s*" + _KEY + rb"|\s*\]|\s*,?\s*\Z)")
_BETWEEN: Final = re.compile(rb"[\s,]*")
_CLOSE: Final = re.compile(rb'\]\s*(?:\Z|\}|,\s*")')  # of the list: the rest of the document follows
_OPEN: Final = re.compile(rb"\{\s*" + _KEY)

_WINDOWS: Final = (1 << 12, 1 << 16, 1 << 20)
_scan = json.JSONDecoder(strict=False).raw_decode
_decode_list = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_fields = msgspec.json.Decoder(dict[str, Any]).decode


class Damage:
    """What was repaired or lost, by kind, with the position of the first of each."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first: dict[str, int] = {}
        self.lost = 0

    def add(self, code: str, offset: int, *, lost: bool = False) -> None:
        """Count one piece of damage at a position of the inflated file."""
        self.counts[code] += 1
        self.first.setdefault(code, offset)
        self.lost += lost

    def cut(self, offset: int, rest: bytes, *, bare: bool) -> None:
        """The file ended before its list of events did. A bare list may do that: the trace format allows it."""
        if rest.strip(b" \t\r\n,"):
            self.add("cut-json", offset, lost=True)
        elif not bare:
            self.add("cut-json", offset)


class Salvage:
    """Takes the whole events of one block.

    Args:
        data: begins at an event or at the separator before it.
        offset: position of `data` in the inflated file.
        damage: takes what was repaired or lost.
        eof: nothing follows; otherwise an event that does not end in `data` is left for the next block.

    Attributes:
        events: the events found.
        used: bytes that they took.
        closed: the list of events ends here.
    """

    def __init__(self, data: bytes, offset: int, damage: Damage, *, eof: bool) -> None:
        self.events: list[Event] = []
        self.used = 0
        self.closed = False
        self._data, self._offset, self._damage, self._eof = data, offset, damage, eof
        self._last = len(data.rstrip(b" \t\r\n,"))

    def run(self) -> Salvage:
        """Find all events of the block."""
        data = self._data
        singly = 0  # up to here the events are taken one by one
        while (begin := self._between()) is not None:
            if data[begin : begin + 1] == b"]":
                self.used, self.closed = begin, True
                break
            stop: int | None = None
            if begin >= singly and (cut := BOUNDARY.search(data, begin + STRETCH)):
                singly = cut.start() + 1
                stop = singly if self._stretch(data[begin:singly]) else None
            if stop is None:
                stop = self._one(begin)
            if stop is None:
                break
            self.used = stop
        return self

    def _between(self) -> int | None:
        """Where the next event or the closing bracket stands; junk before it is counted. None: neither is in sight."""
        found = _BETWEEN.match(self._data, self.used)
        begin = found.end() if found else self.used
        if self._data[begin : begin + 1] == b"{" or _CLOSE.match(self._data, begin):
            return begin
        following = _OPEN.search(self._data, begin)
        if following is None:
            return None
        self._damage.add("invalid-json", self._offset + begin)
        return following.start()

    def _stretch(self, text: bytes) -> bool:
        """Decode some 64 KB: most of a damaged block is sound, or merely has other types than the usual ones."""
        try:
            self.events += decode_events(b"[" + text + b"]")
        except msgspec.ValidationError:
            try:
                self.events += [loosen(raw) for raw in _decode_list(b"[" + text + b"]")]
            except UNDECODABLE:
                return False
        except UNDECODABLE:
            return False
        return True

    def _one(self, begin: int) -> int | None:
        """Take the event that begins at `begin`; returns where it ends, or None where it does not."""
        first = _END.search(self._data, begin)
        if first and self._take(begin, first.start() + 1):
            return first.start() + 1
        ends = self._ends(begin)
        for end in ends:
            if self._take(begin, end) or self._mend(begin, end):
                return end
        if not ends or (ends[0] == self._last if self._eof else len(self._data) - begin < STRETCH):
            return None  # cut off by the end of the file, or perhaps by that of the block
        self._damage.add("invalid-json", self._offset + begin, lost=True)
        return ends[0]

    def _ends(self, begin: int) -> list[int]:
        """Where the event may end: behind its closing brace where its text is sound, else where another one follows."""
        for window in _WINDOWS:
            try:
                return [begin + _scan(self._data[begin : begin + window].decode("latin-1"))[1]]  # a character per byte
            except json.JSONDecodeError as error:
                cut = error.msg.startswith("Unterminated") or error.pos > min(window, len(self._data) - begin) - 16
                if cut and begin + window >= len(self._data) and not self._eof:
                    return []  # the rest of it is in the next block
                if not cut or begin + window >= len(self._data):
                    break
            except RecursionError:
                break
        return [match.start() + 1 for match, _ in zip(_END.finditer(self._data, begin), range(TRIES), strict=False)]

    def _take(self, begin: int, end: int) -> bool:
        try:
            self.events.append(loosen(self._data[begin:end]))
        except UNDECODABLE:
            return False
        return True

    def _mend(self, begin: int, end: int) -> bool:
        fixed, codes = repair(self._data[begin:end])
        try:
            self.events.append(loosen(fixed))
        except UNDECODABLE:
            return False
        for code in codes:
            self._damage.add(code, self._offset + begin)
        return True


def header(text: bytes, damage: Damage, offset: int) -> dict[str, Any]:
    """The `"key": value` pairs of a document outside its events.

    A damaged pair is repaired, or left out with its line.

    Args:
        text: the pairs, without the braces around them.
        damage: takes what was repaired or lost.
        offset: position of `text` in the inflated file; negative where it is not known.
    """
    body = b"{" + text.strip().rstrip(b",") + b"}"
    try:
        return _decode_fields(body)
    except UNDECODABLE as error:
        where = re.search(r"byte (\d+)", str(error))
        lead = len(text) - len(text.lstrip()) - 1
        damage.add("bad-header", max(offset, 0) + lead + (int(where[1]) if where else 0))
    mended, _ = repair(body)
    for _ in range(len(mended.splitlines())):
        try:
            return _decode_fields(mended)
        except UNDECODABLE as error:
            where = re.search(r"byte (\d+)", str(error))
            mended = _without_line(mended, int(where[1]) if where else len(mended))
    return {}


def _without_line(text: bytes, at: int) -> bytes:
    """The text without the line at a position, but with its outer braces."""
    begin = max(text.rfind(b"\n", 0, at), 0)
    end = text.find(b"\n", at)
    head, tail = text[:begin], text[end:] if end >= 0 else b"}"
    return (head or b"{") + tail
