"""Blocks of events that threads scan while those before them are used, in order; machine code runs without the GIL."""

from __future__ import annotations

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from typing import TYPE_CHECKING, NamedTuple, Self, TypeAlias

from tprof.read.torch_events import UNDECODABLE, decode_events
from tprof.read.torch_scan_layout import PAD

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Future

    from tprof.read.torch_events import Event
    from tprof.read.torch_scan_columns import Scanned, Scanner

    Block: TypeAlias = list[Event] | Scanned
    Part: TypeAlias = bytes | memoryview


class _Waiting(NamedTuple):
    parts: Sequence[Part]  # as they came
    text: bytes  # a list of events, and `PAD` zero bytes
    found: Future[Scanned | None]


def block(found: Scanned | None, text: bytes) -> Block | None:
    """Events of a list, padded for the scanner: what that found, else what the decoder does; None if it is no JSON."""
    try:
        return found or decode_events(text[:-PAD])
    except UNDECODABLE:
        return None


class Ahead:
    """What is being scanned. One scanner's block is in use, the others may be filled meanwhile.

    Args:
        scanners: at least two.
    """

    def __init__(self, scanners: Sequence[Scanner]) -> None:
        self._most, self._scanners = len(scanners), cycle(scanners)
        self._threads = ThreadPoolExecutor(len(scanners), "tprof-scan")
        self._waiting: deque[_Waiting] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def full(self) -> bool:
        """Nothing more can be scanned before the first block is taken."""
        return len(self._waiting) == self._most

    def add(self, parts: Sequence[Part], text: bytes) -> None:
        """Scan a block; the one that was taken last is no longer in use."""
        found = self._threads.submit(next(self._scanners).read, text)
        self._waiting.append(_Waiting(parts, text, found))

    def take(self) -> tuple[Block, int] | None:
        """Events of the first block and its bytes; None where it is no JSON: then everything is to be given `back`."""
        first = self._waiting[0]
        events = block(first.found.result(), first.text)
        if events is None:
            return None
        self._waiting.popleft()
        return events, sum(map(len, first.parts))

    def back(self) -> bytes:
        """All that waits, as it came; none of it counts as read."""
        for waiting in self._waiting:
            waiting.found.result()  # its scanner is free from here on
        rest = b"".join(part for waiting in self._waiting for part in waiting.parts)
        self._waiting.clear()
        return rest
