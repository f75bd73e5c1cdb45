"""What a reader of a torch.profiler file should know of it: repairs, losses, and what the file cannot say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.events import Note
from tprof.model import codes, ints
from tprof.read.inflate import Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tprof.read.torch_build import Parts
    from tprof.read.torch_salvage import Damage

_DAMAGE: Final = {
    "bad-escape": "{n} held lone backslashes, which were kept as they are",
    "control-character": "{n} held raw control characters, which became blanks",
    "not-utf8": "{n} held bytes that are not UTF-8, which became replacement characters",
    "not-a-number": "{n} held NaN or Infinity, which is no JSON; such a value counts as missing",
    "missing-quote": "{n} had a key without its opening quote, which was put back",
    "bad-quote": "{n} held unescaped quotes, which were escaped",
    "too-long": "{n} had more than 64 MB and was left out",
    "invalid-json": "{n} could not be read and were left out: no JSON",
    "cut-json": "the file ends before its list of events does; the whole events before were read",
    "bad-header": "the file's header is no valid JSON; what can be read of it was read",
    "duplicate-key": "{n} came twice in one object; the last value counts",
}
_PACKETS: Final = (
    "{n} of an MTIA device not read as device work: what runs and what only waits or signals cannot be told apart"
)
_OLD_AUTOGRAD: Final = (
    "no kernel names and no launches: written by the autograd profiler before Kineto; "
    "record with torch.profiler for more"
)
_ORPHANS: Final = (
    "{n} without a kernel record: the profiler lost it or stopped before it ran, so a gap there need not be idle"
)
_NOUNS: Final = {"invalid-json": "stretch", "duplicate-key": "key"}
_LAUNCH: Final = re.compile(
    r"(cuda|cu|hip)(Ext)?(Module)?(Graph)?Launch(?!HostFunc)|urEnqueueKernelLaunch|aclrtLaunchKernel"
)


def notes(parts: Parts, damage: Damage, source: Source) -> Iterator[Note]:
    """Yield the notes of one file."""
    at = source.source
    lines = _lines(source, sorted(damage.first.values()))
    for code, count in damage.counts.items():
        text = _DAMAGE[code].format(n=_counted(count, _NOUNS.get(code, "event")))
        yield Note(code, f"{text} (first at line {lines[damage.first[code]]:,})", count, at)
    for why, count in parts.dropped.items():
        yield Note("dropped-rows", f"dropped {_counted(count, 'event')}: {why}", count, at)
    for category, count in parts.unknown.items():
        text = f"read {_counted(count, 'event')} of the unknown category {category!r} as ranges"
        yield Note("unknown-category", text, count, at)
    if packets := parts.skipped.get("mtia_ccp_events"):
        yield Note("mtia-packets", _PACKETS.format(n=_counted(packets, "packet")), packets, at)
    if parts.old_autograd:
        yield Note("old-autograd-format", _OLD_AUTOGRAD, parts.tables["device"].num_rows, at)
    yield from _device_notes(parts.tables["host"], parts.tables["device"], at)


def _counted(count: int, noun: str) -> str:
    plural = noun + ("es" if noun.endswith("ch") else "s")
    return f"{count:,} {noun if count == 1 else plural}"


def _device_notes(host: pa.Table, device: pa.Table, source: str) -> Iterator[Note]:
    if not host.num_rows and not device.num_rows:
        yield Note("no-events", "the file has no events; was anything profiled?", 1, source)
        return
    orphans = _orphans(host, device)
    launches = _counted(orphans, "launch")
    if not device.num_rows:
        more = f" although it has {launches}" if orphans else ""
        text = f"the file has no device events{more}; utilisation and idle time cannot be known"
        yield Note("no-device-events", text, max(orphans, 1), source)
    elif orphans:
        yield Note("orphan-launches", _ORPHANS.format(n=launches), orphans, source)


def _orphans(host: pa.Table, device: pa.Table) -> int:
    """Launch calls whose correlation id no device event has; one that a stream capture took put nothing on a device."""
    code, names = codes(host, "name")
    launch = np.array([bool(_LAUNCH.match(name)) for name in names], bool)
    kind, kinds = codes(host, "kind")
    api = np.array([name in ("runtime", "driver") for name in kinds], bool)
    if not len(code):
        return 0
    called = ints(host, "correlation")[launch[code] & api[kind] & ~_captured(host, code, names)]
    called = called[called >= 0]
    return int((~np.isin(called, ints(device, "correlation"))).sum())


def _captured(host: pa.Table, code: np.ndarray, names: list[str]) -> np.ndarray:
    """Whether each row began while its thread was capturing a stream, shape (rows,) bool."""
    step = np.array([name.endswith("StreamBeginCapture") - 1 * name.endswith("StreamEndCapture") for name in names])
    thread, start = ints(host, "thread"), ints(host, "start_ns")
    order = np.lexsort((start, thread))
    depth = np.cumsum(step[code][order])  # captures are balanced on a thread, or the trace ends within one
    inside = np.empty(len(code), bool)
    inside[order] = depth > 0
    return inside


def _lines(source: Source, offsets: list[int]) -> dict[int, int]:
    """Line numbers (from 1) of positions in the inflated file. It is read again: only damaged files pay for it."""
    out: dict[int, int] = {}
    seen, line = 0, 1
    pending = list(offsets)
    for piece in Source(source.path, source.source).pieces() if pending else ():
        while pending and pending[0] < seen + len(piece):
            out[pending[0]] = line + piece.count(b"\n", 0, pending[0] - seen)
            pending.pop(0)
        seen += len(piece)
        line += piece.count(b"\n")
        if not pending:
            break
    return {**dict.fromkeys(pending, line), **out}
