"""The two files of a process: a journal of JSON lines for cold events, and binary chunks for launches.

Both are append-only and written with bare `write` calls, so that everything that was written survives `kill -9`.
The format is documented in docs/run-directory.md.
"""

from __future__ import annotations

import json
import math
import os
import struct
import threading
from array import array
from typing import TYPE_CHECKING, Any, Final

from tprof.record import guard

if TYPE_CHECKING:
    from pathlib import Path

MAX_PENDING: Final = 10_000  # records that may wait for the writer; one more and the adding thread writes them itself
FIELDS: Final = 5  # ints of a launch: t_enter, t_exit, key, span, request
FILE_HEADER: Final = struct.Struct("<8sII")
CHUNK_HEADER: Final = struct.Struct("<4sIqq")
COLUMNS: Final = "qqiii"
ROW_BYTES: Final = 28


class AppendFile:
    """A file that only grows. After the first failed write, or without a path, it swallows and counts what follows."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.lost, self.failed, self._fd = path, 0, path is None, -1
        if path is not None:
            self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def write(self, data: bytes, items: int) -> None:
        """Append `data`, which holds `items` records; a full disk costs records, never an exception."""
        if self.failed:
            self.lost += items
            return
        try:
            problem = "" if os.write(self._fd, data) == len(data) else "the disk took only a part"
        except OSError as error:
            problem = str(error)
        if problem:
            self.failed, self.lost = True, self.lost + items
            guard.warn("write-failed", f"{self.path} cannot be written ({problem}); what follows is not recorded")

    def close(self) -> None:
        """Close the file; later writes are swallowed."""
        self.failed = True
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Journal:
    """Cold records of one process, in the order they were added; nowhere without a path."""

    def __init__(self, path: Path | None) -> None:
        self.file = AppendFile(path)
        self._pending: list[dict[str, Any]] = []
        self._lock = threading.RLock()  # a signal handler that traces may come in the middle of a flush

    def add(self, record: dict[str, Any]) -> None:
        """Queue a record; the writer thread puts it on disk within its interval."""
        self._pending.append(record)
        if len(self._pending) > MAX_PENDING or self.file.failed:
            self.flush()

    def add_now(self, record: dict[str, Any]) -> None:
        """Put a record, and all before it, on disk before this returns."""
        self._pending.append(record)
        self.flush()

    def flush(self) -> None:
        """Write what waits."""
        with self._lock:
            count = len(self._pending)
            batch = self._pending[:count]
            del self._pending[:count]
            if batch and self.file.path is not None:
                self.file.write(b"".join(map(encode, batch)), count)


class LaunchFile:
    """Launches of one process in chunks, one thread per chunk, column after column; nowhere without a path."""

    def __init__(self, path: Path | None) -> None:
        self.file, self.rows = AppendFile(path), 0
        self.file.write(FILE_HEADER.pack(b"TPROFLCH", 1, ROW_BYTES), 0)

    def write(self, tid: int, t_ns: int, flat: list[int]) -> None:
        """Append the launches of one thread: `flat` holds FIELDS ints per launch."""
        rows = len(flat) // FIELDS
        columns = [array(code, flat[i::FIELDS]).tobytes() for i, code in enumerate(COLUMNS)]
        self.file.write(CHUNK_HEADER.pack(b"CHNK", rows, tid, t_ns) + b"".join(columns), rows)
        self.rows += rows


def encode(record: dict[str, Any]) -> bytes:
    """One JSON line; what JSON cannot say (infinities, foreign objects) becomes null or text."""
    try:
        line = json.dumps(record, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        line = json.dumps(plain(record), separators=(",", ":"))
    return line.encode() + b"\n"


def plain(value: Any, depth: int = 8) -> Any:
    """`value` out of JSON's own types; at most `depth` levels."""
    if value is None or isinstance(value, bool | str):
        return value
    if type(value) is int:
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict) and depth:
        return {str(key): plain(item, depth - 1) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset) and depth:
        return [plain(item, depth - 1) for item in value]
    return str(value)[:500]
