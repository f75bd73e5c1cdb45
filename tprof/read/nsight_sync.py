"""What calls of the CUDA API waited for, as an Nsight export says of its synchronisations."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from tprof.read import nsight_schema as ns
from tprof.read.nsight_rows import Reading, distinct, numbers, pids

if TYPE_CHECKING:
    from collections.abc import Sequence

_NONE: Final = -1
_NO_STREAM: Final = 0xFFFFFFFF  # of a wait for an event or a whole context
_WORDS: Final = ("wait", "device", "stream", "event")


def waits(reading: Reading, calls: pa.Table) -> pa.Array:
    """What each call waited for as JSON, joined by its correlation id within its process; null for nothing.

    Args:
        reading: the export.
        calls: rows with `globalTid` and `correlationId`.
    """
    wanted = ("correlationId", "globalPid", "syncType", "deviceId", "streamId", "eventId")
    data = reading.db.fetch(ns.SYNC, wanted)
    known, correlation = _keys(data, "globalPid"), numbers(calls, "correlationId", _NONE)
    if not len(known) or not len(calls):
        return pa.nulls(len(calls), pa.string())
    order = np.argsort(known, kind="stable")
    asked = _keys(calls, "globalTid")
    place = np.minimum(np.searchsorted(known[order], asked), len(known) - 1)
    found = (known[order][place] == asked) & (correlation != _NONE)
    group, rows = distinct(*(numbers(data, name, _NONE) for name in wanted[2:]))
    texts = pa.array([json.dumps(_told(row)) for row in rows])
    return texts.take(pa.array(group[order][place], mask=~found))


def _keys(data: pa.Table, process: str) -> np.ndarray:
    return (pids(numbers(data, process)) << 32) | (numbers(data, "correlationId", _NONE) & 0xFFFFFFFF)


def _told(row: Sequence[int]) -> dict[str, object]:
    kind, *numbers_ = row
    told = {word: n for word, n in zip(_WORDS[1:], numbers_, strict=True) if n not in (_NONE, _NO_STREAM)}
    return {"wait": ns.SYNC_TYPES.get(kind, "unknown"), **told}
