"""Processes, threads and devices of a torch.profiler file."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from tprof.model import table
from tprof.read.torch_events import MISSING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from tprof.read.torch_columns import Columns

_NUMBER: Final = re.compile(r"\s*(?:stream|thread|queue)?\s*(-?\d+)\s*")
_OLD_DEVICE: Final = "CUDA functions"
_ASCEND: Final = "Ascend Hardware"
_PROFILER: Final = -1  # the process under which Kineto shows its own overhead


class Places:
    """Where the rows of a file ran: raw (pid, tid) pairs to ids, and their names.

    Args:
        columns: the file's columns.
        host: name of the machine, or "".

    Attributes:
        main: the process of the file, which owns its device events; known once `host` was called.
        ascend: a process of the file is an Ascend device; `on_ascend` says so of each (pid, tid).
        old_autograd: the file is of the autograd profiler before Kineto.
    """

    def __init__(self, columns: Columns, host: str) -> None:
        self.machine = host
        self._pairs: list[tuple[int | str, int | str]] = list(columns.threads)
        self._named: dict[str, int] = {}
        self._pid = np.array([self._id(pid) for pid, _ in self._pairs], np.int64)
        self._tid = np.array([self._id(tid) for _, tid in self._pairs], np.int64)
        self.process_names = {self._id(p): _text(raw) for name, p, _, raw in columns.metadata if name == "process_name"}
        self.thread_names = {
            (self._id(p), self._id(t)): _text(raw) for name, p, t, raw in columns.metadata if name == "thread_name"
        }
        self.on_ascend = np.array([self.process_names.get(pid) == _ASCEND for pid in self._pid.tolist()], bool)
        self.ascend = bool(self.on_ascend.any())
        self.old_autograd = any(pid == _OLD_DEVICE for pid, _ in self._pairs)
        self.main = 0
        self._devices: np.ndarray = np.empty(0, np.int64)
        self._threads: np.ndarray = np.empty((0, 2), np.int64)

    def _id(self, value: int | str) -> int:
        """A number for an id that may be text: the number in it, else a negative one."""
        if isinstance(value, int):  # what does not fit 64 bits with a sign keeps its lowest
            return (value + (1 << 63)) % (1 << 64) - (1 << 63)
        if (found := _NUMBER.fullmatch(value)) and len(found[1]) < 19:
            return int(found[1])
        return self._named.setdefault(value, -2 - len(self._named))

    def kinds(self, pair: np.ndarray, kinds: Sequence[str]) -> np.ndarray:
        """Kinds (numbers in `kinds`) of rows without a category, by the process they are shown under."""
        look = np.full(len(self._pairs) + 1, kinds.index("op"), np.int8)
        for code, (pid, _) in enumerate(self._pairs):
            process = self.process_names.get(self._id(pid), "")
            if pid == _OLD_DEVICE or process == _ASCEND:
                look[code] = kinds.index("kernel")
            elif process == "CANN":
                look[code] = kinds.index("runtime")
        return look[pair]

    def host(self, pair: np.ndarray, api: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row of `threads`, pid and tid of host events.

        Args:
            pair: number of each row's (pid, tid).
            api: which rows are calls of the device API; the process with most of them owns the device events.
        """
        counts = np.bincount(pair[api] if api.any() else pair, minlength=len(self._pairs))
        self.main = self._main(counts)
        self._pid[self._pid == _PROFILER] = self.main
        used = np.unique(pair)
        self._threads, row = np.unique(np.stack([self._pid[used], self._tid[used]], 1), axis=0, return_inverse=True)
        look = np.zeros(len(self._pairs), np.int32)
        look[used] = row.reshape(-1)
        return look[pair], self._pid[pair], self._tid[pair]

    def _main(self, counts: np.ndarray) -> int:
        totals: Counter[int] = Counter()
        for pid, count in zip(self._pid.tolist(), counts.tolist(), strict=True):
            totals[pid] += count
        totals.pop(_PROFILER, None)
        return max(totals, key=lambda pid: totals[pid]) if counts.any() and totals else 0

    def device(self, pair: np.ndarray, device: np.ndarray, stream: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Row of `devices` and stream of device events; a producer that names no stream has its queue as thread."""
        ordinal = np.where(device == MISSING, self._pid[pair], device)
        ordinal = np.where(ordinal < 0, 0, ordinal)
        self._devices, row = np.unique(ordinal, return_inverse=True)
        return row.astype(np.int32), np.where(stream == MISSING, self._tid[pair], stream)

    def tables(self, fields: dict[str, Any], *, devices_used: bool) -> dict[str, pa.Table]:
        """Tables `processes`, `threads` and `devices`."""
        pids = sorted({*self._threads[:, 0].tolist(), *([self.main] if devices_used else [])})
        texts = {code: text for text, code in self._named.items()}
        threads, devices = self._threads.tolist(), self._devices.tolist()
        job = fields.get("distributedInfo")
        rank = job.get("rank") if isinstance(job, dict) else None
        models = _models(fields.get("deviceProperties"))
        return {
            "processes": table("processes", {
                "host": [self.machine] * len(pids), "pid": pids,
                "name": [self.process_names.get(pid) or texts.get(pid) for pid in pids],
                "rank": [rank if isinstance(rank, int) and 0 <= rank < 1 << 31 else None] * len(pids),
            }),
            "threads": table("threads", {
                "host": [self.machine] * len(threads), "pid": [pid for pid, _ in threads],
                "tid": [tid for _, tid in threads],
                "name": [self.thread_names.get((pid, tid)) or texts.get(tid) for pid, tid in threads],
            }),
            "devices": table("devices", {
                "host": [self.machine] * len(devices), "pid": [self.main] * len(devices), "ordinal": devices,
                "name": [models.get(ordinal) for ordinal in devices], "source": [0] * len(devices),
            }),
        }  # fmt: skip


def _models(properties: object) -> dict[object, str | None]:
    """Model name of each device ordinal."""
    known = [p for p in properties if isinstance(p, dict)] if isinstance(properties, list) else []
    return {p["id"]: str(p["name"]) for p in known if p.get("name") and isinstance(p.get("id"), int)}


def _text(raw: bytes) -> str:
    try:
        return str(msgspec.json.decode(raw)).strip()
    except msgspec.DecodeError:
        return raw.decode("utf-8", "replace")
