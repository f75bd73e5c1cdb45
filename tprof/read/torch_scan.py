"""Trace events to numbers without a Python object per event: machine code, compiled by numba.

`scan` is strict: what it is not sure to read exactly as the decoder of `torch_events` does, it refuses, and the block
goes that way. Of a text it knows only where it stands: distinct ones are numbered, and `torch_scan_columns` decodes
each once.

Importing this module imports numba; nothing is compiled before `scan` is called.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tprof.read import torch_scan_layout as at
from tprof.read.torch_scan_json import (
    BAD,
    DIGITS,
    MASKS,
    byte,
    cell,
    colon,
    compiled,
    integer,
    nanoseconds,
    plain,
    put,
    skip,
    space,
    string,
    word,
)  # fmt: skip

_MIX: Final = 0x9E3779B97F4A7C15 - (1 << 64)  # of a hash: an odd number of many bits, as an int64
_LABELLED: Final = np.array(at.LABELLED)
_X, _M = ord("X"), ord("M")

# ---- keys: name -> what its value is, and where it goes

_TIME, _INT, _TRIPLE, _TEXT, _ID, _RAW, _ARGS, _REFUSE = range(8)
_KEYS: Final[tuple[dict[str, tuple[int, int]], ...]] = (
    {
        "ph": (_TEXT, at.PHASE), "cat": (_TEXT, at.CAT), "name": (_TEXT, at.TITLE), "pid": (_ID, at.PID),
        "tid": (_ID, at.TID), "ts": (_TIME, at.TS), "dur": (_TIME, at.DUR), "args": (_ARGS, 0),
    },
    {
        "correlation": (_INT, at.CORRELATION), "External id": (_INT, at.EXTERNAL), "bytes": (_INT, at.BYTES),
        "external id": (_INT, at.EXTERNAL_OLD), "device": (_INT, at.DEVICE), "context": (_INT, at.CONTEXT),
        "stream": (_INT, at.STREAM), "registers per thread": (_INT, at.REGISTERS), "shared memory": (_INT, at.SHARED),
        "graph node id": (_INT, at.NODE), "grid": (_TRIPLE, at.GRID), "block": (_TRIPLE, at.BLOCK),
        "Input Dims": (_RAW, at.DIMS), "Input type": (_RAW, at.TYPES), "Input Strides": (_RAW, at.STRIDES),
        "kernel_backend": (_RAW, at.BACKEND), "kernel_hash": (_RAW, at.HASH), "kernel_file": (_RAW, at.FILE),
        "name": (_RAW, at.LABEL), "Task Type": (_REFUSE, 0), "Stream Id": (_REFUSE, 0),  # Ascend, whose times are texts
    },
)  # fmt: skip
_LONGEST: Final = max(len(key) for keys in _KEYS for key in keys)


def _key_tables() -> tuple[np.ndarray, np.ndarray]:
    """Per level and length, where its keys begin; per key, its first, middle and last 8 bytes, kind and place."""
    found = sorted((level, len(key), key, *what) for level, keys in enumerate(_KEYS) for key, what in keys.items())
    begin = [
        [sum((a, b) < (level, length) for a, b, *_ in found) for length in range(_LONGEST + 2)] for level in (0, 1)
    ]
    words = np.array([_words(key.encode()) for _, _, key, _, _ in found], np.uint64).view(np.int64)
    return np.array(begin), np.column_stack([words, np.array([what for _, _, _, *what in found])])


def _words(key: bytes) -> list[int]:
    parts = key[:8], key[8:16] if len(key) > 16 else b"", key[-8:] if len(key) > 8 else b""
    return [int.from_bytes(part, "little") for part in parts]


_BEGIN, _TABLE = _key_tables()
_STRETCHES: Final = np.array(at.STRETCHES)
_NEW_ROW: Final = np.array(at.NEW_ROW)

# ---- events


@compiled
def _find(p: int, length: int, level: int) -> int:
    """Row of `_TABLE` of a key; negative for one of no interest."""
    if length > _LONGEST:
        return -1
    head = word(p) & MASKS[min(length, 8)]
    for n in range(_BEGIN[level, length], _BEGIN[level, length + 1]):
        if _TABLE[n, 0] == head:
            same = length <= 8 or _TABLE[n, 2] == word(p + length - 8)
            if same and (length <= 16 or _TABLE[n, 1] == word(p + 8)):
                return n
    return -1


@compiled
def _triple(p: int, row: int, place: int) -> int:
    """A list of three integers; they are clipped to 32 bits, and to -1."""
    for n in range(3):
        if byte(p) != (91 if n == 0 else 44):
            return BAD
        begin = space(p + 1)
        p, found = integer(begin)
        if p < 0 or p - begin > DIGITS:
            return BAD
        put(row, place + n, min(max(found, -1), 0x7FFFFFFF))
        p = space(p)
    return p + 1 if byte(p) == 93 else BAD


@compiled
def _stretch(p: int, kind: int, place: int, work: int) -> int:
    """A value that stays text: where it stands."""
    begin = work + 8 * (at.SPANS_AT + 2 * place)
    if kind == _RAW:
        end = skip(p)
    elif cell(begin, 0) >= 0:  # given twice: the decoder looks at both
        end = BAD
    elif byte(p) != 34:
        end = integer(p)[0] if kind == _ID else BAD
    else:
        end = plain(p + 1)
        if end < 0:
            put(work, at.ODD, 1)
            end = string(p + 1)
    put(begin, 0, p)
    put(begin, 1, end)
    return end


@compiled
def _loose(p: int, work: int) -> tuple[int, int]:
    """An integer, or the text of one as ROCm writes it; a text in hexadecimal counts as not given."""
    if byte(p) != 34:
        return integer(p)
    put(work, at.LOOSE, 1)
    if byte(p + 1) == 48 and byte(p + 2) == 120:
        return plain(p + 1), -1
    end, found = integer(p + 1)
    return end + 1 if end > 0 and byte(end) == 34 else BAD, found


@compiled
def _args(p: int, work: int) -> int:
    """The brace that opens `args`, up to the first key; of two, the decoder keeps the last."""
    known = byte(p) == 123 and cell(work, at.SEEN_ARGS) == 0
    put(work, at.SEEN_ARGS, 1)
    return space(p + 1) if known else BAD


@compiled
def _field(p: int, key: int, row: int, work: int) -> int:
    """The value of a key."""
    if key < 0:
        return skip(p)
    kind, place = _TABLE[key, 3], _TABLE[key, 4]
    if kind in (_TIME, _INT):
        p, found = _loose(p, work) if kind == _INT else nanoseconds(p)
        put(row, place, found)
        return p
    if kind == _TRIPLE:
        return _triple(p, row, place)
    if kind == _ARGS:
        return _args(p, work)
    return _stretch(p, kind, place, work) if kind != _REFUSE else BAD


@compiled
def _after(p: int, level: int) -> tuple[int, int]:
    """From behind a value: up to the next key and its level, or behind the event (level -1)."""
    p = space(p)
    while byte(p) == 125:
        if level == 0:
            return p + 1, -1
        level, p = 0, space(p + 1)
    return space(p + 1) if byte(p) == 44 else BAD, level


@compiled
def _event(p: int, row: int, work: int) -> int:
    """An event from behind its opening brace on."""
    level, p = 0, space(p)
    if byte(p) == 125:
        return p + 1
    while level >= 0:
        end = plain(p + 1) if byte(p) == 34 else BAD  # with escapes, it could spell any key
        begin = colon(end) if end > 0 else BAD
        if begin < 0:
            return BAD
        key = _find(p + 1, end - p - 2, level)
        p = _field(begin, key, row, work)
        if p < 0:
            return BAD
        if key >= 0 and _TABLE[key, 3] == _ARGS:
            level = 1
            if byte(p) != 125:
                continue
        p, level = _after(p, level)
        if p < 0:
            return BAD
    return p


# ---- distinct texts


@compiled
def _hash(kind: int, spans: int) -> int:
    found = kind
    for n in range(_STRETCHES[kind, 1]):
        begin, end = cell(spans, 2 * n), cell(spans, 2 * n + 1)
        found = (found ^ (end - begin)) * _MIX
        for p in range(begin, end, 8):
            found = (found ^ (word(p) & MASKS[min(end - p, 8)])) * _MIX
            found ^= found >> 29
    return found


@compiled
def _same(entry: int, kind: int, spans: int) -> bool:
    for n in range(_STRETCHES[kind, 1]):
        begin, end = cell(spans, 2 * n), cell(spans, 2 * n + 1)
        other = cell(entry, 2 + 2 * n)
        if cell(entry, 3 + 2 * n) - other != end - begin:
            return False
        for p in range(begin, end, 8):
            if (word(p) ^ word(other + p - begin)) & MASKS[min(end - p, 8)]:
                return False
    return True


@compiled
def _text(kind: int, work: int) -> int:
    """Number of a text of the event among the block's."""
    spans = work + 8 * (at.SPANS_AT + 2 * _STRETCHES[kind, 0])
    found = _hash(kind, spans)
    slot = (found ^ (found >> 32)) & (at.SLOTS - 1)
    while True:
        number = cell(work, at.SLOTS_AT + slot)
        if number < 0:
            break
        entry = work + 8 * (at.ENTRIES_AT + at.ENTRY * number)
        if cell(entry, 0) == kind and cell(entry, 1) == found and _same(entry, kind, spans):
            return number
        slot = (slot + 1) & (at.SLOTS - 1)
    number = cell(work, at.ENTRY_COUNT)
    put(work, at.ENTRY_COUNT, number + 1)
    put(work, at.SLOTS_AT + slot, number)
    entry = work + 8 * (at.ENTRIES_AT + at.ENTRY * number)
    put(entry, 0, kind)
    put(entry, 1, found)
    for n in range(2 * _STRETCHES[kind, 1]):
        put(entry, 2 + n, cell(spans, n))
    return number


# ---- blocks


@compiled
def _phase(work: int) -> int:
    """The letter of the event's phase; 0 for none."""
    begin = cell(work, at.SPANS_AT + 2 * at.PHASE)
    length = cell(work, at.SPANS_AT + 2 * at.PHASE + 1) - begin
    if begin < 0 or length == 2:
        return 0
    letter = byte(begin + 1)
    return letter if length == 3 and letter < 128 else BAD


@compiled
def _keep(row: int, work: int) -> None:
    """Number the texts of a complete event."""
    for kind in range(at.EXTRA + 1):
        given = kind <= at.THREAD or cell(work, at.SPANS_AT + 2 * _STRETCHES[kind, 0]) >= 0
        put(row, at.TEXTS + kind, _text(kind, work) if given else -1)


@compiled
def _label(work: int) -> None:
    """Remember a metadata event that names something."""
    number = cell(work, at.LABEL_COUNT)
    put(work, at.LABEL_COUNT, number + 1)
    label = work + 8 * (at.LABELS_AT + at.LABEL_ROW * number)
    for n in range(4):
        place = at.SPANS_AT + 2 * _LABELLED[n]
        put(label, 2 * n, cell(work, place))
        put(label, 2 * n + 1, cell(work, place + 1))


@compiled
def _named(work: int) -> bool:
    """A text stands for the process or the thread; in an event with other odd types, it may be read as a number."""
    pid, tid = cell(work, at.SPANS_AT + 2 * at.PID), cell(work, at.SPANS_AT + 2 * at.TID)
    return (pid > 0 and byte(pid) == 34) or (tid > 0 and byte(tid) == 34)


@compiled
def _finish(number: int, row: int, work: int) -> int:
    """Count an event and keep what is wanted of it: 1 if it takes its row, 0 if not, or BAD."""
    phase = _phase(work)
    if phase < 0 or (cell(work, at.LOOSE) and _named(work)):
        return BAD
    seen = cell(work, at.PHASES_AT + 2 * phase)
    put(work, at.PHASES_AT + 2 * phase, seen + 1)
    if seen == 0:
        put(work, at.PHASES_AT + 2 * phase + 1, number)
    if phase == _X:
        _keep(row, work)
        return 1
    if phase == _M and cell(work, at.SPANS_AT + 2 * at.LABEL) >= 0:
        _label(work)
        return 0
    return BAD if cell(work, at.ODD) else 0  # the decoder looks at texts that nobody asks for, too


@compiled
def _begin(row: int, work: int) -> None:
    """Nothing is known of the event yet."""
    for n in range(at.TEXTS):
        put(row, n, _NEW_ROW[n])
    for n in range(at.FIELDS):
        put(work, at.SPANS_AT + 2 * n, -1)
        put(work, at.SPANS_AT + 2 * n + 1, -1)
    put(work, at.ODD, 0)
    put(work, at.LOOSE, 0)
    put(work, at.SEEN_ARGS, 0)


@compiled
def _full(rows: int, work: int) -> bool:
    entries, labels = cell(work, at.ENTRY_COUNT), cell(work, at.LABEL_COUNT)
    return rows == at.MOST_ROWS or entries + 5 > at.MOST_ENTRIES or labels == at.MOST_LABELS


@compiled
def scan(text: int, size: int, work: int) -> int:
    """Read a list of events.

    Args:
        text: address of the list, with `PAD` zero bytes behind it.
        size: bytes of the list.
        work: address of the memory to fill: see `torch_scan_layout`.

    Returns:
        Rows filled, or `BAD`: the text is not read here.
    """
    rows, number, p = 0, 0, text
    while byte(p) == (44 if number else 91):
        p = space(p + 1)
        if byte(p) != 123 or _full(rows, work):
            return BAD
        row = work + 8 * (at.ROWS_AT + at.ROW * rows)
        _begin(row, work)
        p = _event(p + 1, row, work)
        taken = _finish(number, row, work) if p > 0 else BAD
        if taken < 0:
            return BAD
        rows, number, p = rows + taken, number + 1, space(p)
    return rows if byte(p) == 93 and p + 1 == text + size and number > 0 else BAD
