"""Blocks of events by the scanner of `torch_scan`: when it is used, and what it found as columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np
import pyarrow as pa

from tprof.machine import Native
from tprof.read import torch_scan_layout as at
from tprof.read.torch_columns import DEVICE_CATEGORIES
from tprof.read.torch_events import MISSING, UNDECODABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.read.torch_columns import Codes, Columns

# Inflated bytes from which on the scanner is used. Both were measured on an H200's trace of 91 MB, CPU seconds: 0.40
# saved (4.4 ms per MB) against 0.03 to load the code, and against 7 to compile it, which is done at once only for a
# file that wins that time back.
LOAD_BYTES: Final = 12 << 20
COMPILE_BYTES: Final = 1600 << 20
MOST_SCANNERS: Final = 4  # what is done with a block's columns takes half as long as the scan, on one thread
SCAN: Final = Native("tprof.read.torch_scan", "scan", ("int64", "int64", "int64"), LOAD_BYTES, COMPILE_BYTES,
                     ("tprof.read.torch_scan_json", "tprof.read.torch_scan_layout"))  # fmt: skip
_DEVICE_FIELDS: Final = {
    "device": at.DEVICE, "context": at.CONTEXT, "stream": at.STREAM, "registers": at.REGISTERS, "shared": at.SHARED,
    "bytes": at.BYTES, "node": at.NODE,
}  # fmt: skip
_decode_text = msgspec.json.Decoder(str).decode
_decode_id = msgspec.json.Decoder(int | str).decode


def choose(expected: int) -> list[Scanner]:
    """Scanners if they pay for a file: one for each block that may be scanned at a time.

    Args:
        expected: bytes that the file will inflate to.

    Raises:
        UsageError: as `Native.choose`.
    """
    scan = SCAN.choose(expected)
    at_a_time = min(pa.cpu_count(), MOST_SCANNERS) if expected >= LOAD_BYTES else 1
    return [Scanner(scan) for _ in range(at_a_time)] if scan else []


@dataclass(frozen=True)
class Scanned:
    """What the scanner found in a block; valid until it reads the next one.

    Attributes:
        rows: a row for each complete event: see `torch_scan_layout`.
        kinds: of each distinct text, its kind.
        texts: of each kind, the distinct values in order of first use.
        skipped: events of other phases, by phase.
        labels: (name, pid, tid, raw value) of the metadata events that name something.
    """

    rows: np.ndarray
    kinds: np.ndarray
    texts: tuple[list[Any], ...]
    skipped: dict[str, int]
    labels: list[tuple[str, int | str, int | str, bytes]]

    def coded(self, kind: int, codes: Codes[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Rows that have a text of a kind, and its codes."""
        look = np.empty(len(self.kinds), np.int32)
        look[self.kinds == kind] = [codes[value] for value in self.texts[kind]]
        column = self.rows[:, at.TEXTS + kind]
        owners = np.flatnonzero(column >= 0)
        return owners, look[column[owners]]

    def put(self, columns: Columns) -> None:
        """Append to the columns of a file, as `Columns.add` does with decoded events."""
        columns.skipped.update(self.skipped)
        columns.metadata += self.labels
        if not len(self.rows):
            return
        category = self.coded(at.CATEGORY, columns.categories)[1]
        external, older = self.rows[:, at.EXTERNAL], self.rows[:, at.EXTERNAL_OLD]
        columns.put(
            start=self.rows[:, at.TS].copy(), length=self.rows[:, at.DUR].copy(), category=category,
            external=np.where(external == MISSING, older, external),
            name=self.coded(at.NAME, columns.names)[1], thread=self.coded(at.THREAD, columns.threads)[1],
            correlation=self.rows[:, at.CORRELATION].copy(),
        )  # fmt: skip
        self._device(columns, category)
        for row, column, kind, codes in (
            ("shape_row", "shape", at.SHAPE, columns.shapes), ("extra_row", "extra", at.EXTRA, columns.extras),
        ):  # fmt: skip
            owners, found = self.coded(kind, codes)
            columns.put(**{row: owners + columns.rows, column: found})
        columns.rows += len(self.rows)

    def _device(self, columns: Columns, category: np.ndarray) -> None:
        wanted = np.array([value in DEVICE_CATEGORIES or value == "" for value in columns.categories])
        rows = np.flatnonzero(wanted[category])
        mine = self.rows[rows]
        tasks = np.full(len(rows), columns.tasks[None] if len(rows) else 0, np.int32)
        columns.put(device_row=rows + columns.rows, task=tasks, stream_ascend=np.full(len(rows), MISSING))
        columns.put(**{field: mine[:, place].copy() for field, place in _DEVICE_FIELDS.items()})
        columns.put(
            grid=mine[:, at.GRID : at.GRID + 3].astype(np.int32),
            block=mine[:, at.BLOCK : at.BLOCK + 3].astype(np.int32),
        )


class Scanner:
    """Reads blocks of events.

    Args:
        scan: the compiled function of `torch_scan`.
    """

    def __init__(self, scan: Callable[[int, int, int], int]) -> None:
        self._scan = scan
        self._work = np.empty(at.CELLS, np.int64)

    def read(self, text: bytes) -> Scanned | None:
        """Read a list of events.

        Args:
            text: the list, and `PAD` zero bytes.

        Returns:
            What was found; None where only the decoder can say what the text is.
        """
        work = self._work
        work[: at.SPANS_AT] = work[at.PHASES_AT : at.SLOTS_AT] = 0
        work[at.SLOTS_AT : at.ENTRIES_AT] = -1
        base = np.frombuffer(text, np.uint8).ctypes.data
        count = self._scan(base, len(text) - at.PAD, work.ctypes.data)
        if count < 0:
            return None
        entries = _table(work, at.ENTRIES_AT, at.ENTRY, int(work[at.ENTRY_COUNT]))
        labels = _table(work, at.LABELS_AT, at.LABEL_ROW, int(work[at.LABEL_COUNT]))
        rows = _table(work, at.ROWS_AT, at.ROW, count)
        try:
            texts = _texts(text, entries[:, 0], entries[:, 2:] - base)
            return Scanned(rows, entries[:, 0], texts, self._skipped(), _labels(text, labels - base))
        except UNDECODABLE:
            return None

    def _skipped(self) -> dict[str, int]:
        phases = self._work[at.PHASES_AT : at.SLOTS_AT].reshape(-1, 2)
        seen = np.flatnonzero(phases[:, 0])
        seen = seen[np.argsort(phases[seen, 1])]
        return {chr(letter) if letter else "": int(phases[letter, 0]) for letter in seen.tolist() if letter != ord("X")}


def _table(work: np.ndarray, begin: int, width: int, rows: int) -> np.ndarray:
    return work[begin : begin + width * rows].reshape(rows, width)


def _texts(text: bytes, kinds: np.ndarray, places: np.ndarray) -> tuple[list[Any], ...]:
    """Distinct values of each kind. What is not given is an empty stretch."""
    category, name, thread, shape, extra = (places[kinds == kind].tolist() for kind in range(len(at.STRETCHES)))
    return (
        [_text(text[a:b]) for a, b, *_ in category], [_text(text[a:b]) for a, b, *_ in name],
        [(_id(text[a:b]), _id(text[c:d])) for a, b, c, d, *_ in thread],
        [(text[a:b], text[c:d], text[e:f]) for a, b, c, d, e, f in shape],
        [(text[a:b], text[c:d], text[e:f]) for a, b, c, d, e, f in extra],
    )  # fmt: skip


def _labels(text: bytes, places: np.ndarray) -> list[tuple[str, int | str, int | str, bytes]]:
    return [(_text(text[a:b]), _id(text[c:d]), _id(text[e:f]), text[g:h]) for a, b, c, d, e, f, g, h in places.tolist()]


def _text(raw: bytes) -> str:
    return _decode_text(raw) if raw else ""


def _id(raw: bytes) -> int | str:
    return _decode_id(raw) if raw else ""
