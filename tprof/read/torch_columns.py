"""Events of one block after another, gathered as numpy columns: the Python objects of a block die with it."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter
from typing import Final, TypeVar

import numpy as np

from tprof.read.torch_events import MISSING, Args, Event
from tprof.read.torch_numbers import int64, nanoseconds, triples

_NO_ARGS: Final = Args()
_NO_DIMS: Final = _NO_ARGS.dims  # the same object in all events without: compared by identity
_NO_BACKEND: Final = _NO_ARGS.kernel_backend
# Which categories may be device work; "" has no category (Ascend, the old autograd profiler): decided at the end.
DEVICE_CATEGORIES: Final = {
    "kernel": "kernel", "Kernel": "kernel", "concurrent_kernel": "kernel", "gpu_memcpy": "memcpy", "Memcpy": "memcpy",
    "gpu_memset": "memset", "Memset": "memset", "privateuse1_kernel": "kernel",
    "privateuse1_memcpy": "memcpy", "privateuse1_memset": "memset", "hpu_op": "kernel",
}  # fmt: skip
DEVICE_FIELDS: Final = (
    "device", "context", "stream", "stream_ascend", "registers", "shared", "bytes", "node",
)  # fmt: skip


_MERGED: Final = 64  # parts of a column, of some 70 KB each
_PHASE: Final = attrgetter("ph")
K = TypeVar("K")
Texts = tuple[bytes, bytes, bytes]


class Codes(dict[K, int]):
    """Values in order of first use, each with its number."""

    def __missing__(self, key: K) -> int:
        """Number a new value."""
        self[key] = code = len(self)
        return code


class Columns:
    """Columns of all complete ("X") events of a file, in file order.

    Attributes:
        categories, names, threads, tasks, shapes, extras: values behind the codes of the columns of these names;
            `threads` are (pid, tid) as the file says them, `shapes` (dims, types, strides) as raw JSON.
        skipped: events of other phases, by phase.
        metadata: (name, pid, tid, raw value) of the metadata events that name something.
    """

    def __init__(self) -> None:
        self.categories: Codes[str] = Codes()
        self.names: Codes[str] = Codes()
        self.threads: Codes[tuple[int | str, int | str]] = Codes()
        self.tasks: Codes[str | None] = Codes()
        self.shapes: Codes[Texts] = Codes()
        self.extras: Codes[Texts] = Codes()
        self._known_shapes: dict[bytes, int] = {}
        self.skipped: Counter[str] = Counter()
        self.metadata: list[tuple[str, int | str, int | str, bytes]] = []
        self.rows = 0
        self._parts: dict[str, list[np.ndarray]] = {}

    def add(self, events: list[Event]) -> None:
        """Take the events of one block."""
        complete = self._complete(events)
        if not complete:
            return
        start, length = nanoseconds([e.ts for e in complete]), nanoseconds([e.dur for e in complete])
        args = [event.args or _NO_ARGS for event in complete]
        external = int64([a.external for a in args])
        without = np.flatnonzero(external == MISSING)  # before torch 1.12 most categories spelt it otherwise
        external[without] = int64([args[row].external_old for row in without.tolist()])
        category = np.array([self.categories[e.cat] for e in complete], np.int32)
        self.put(
            start=start, length=length, category=category, external=external,
            name=np.array([self.names[e.name] for e in complete], np.int32),
            thread=np.array([self.threads[e.pid, e.tid] for e in complete], np.int32),
            correlation=int64([a.correlation for a in args]),
        )  # fmt: skip
        self._device(args, category)
        self._described(args)
        self.rows += len(complete)

    def put(self, **columns: np.ndarray) -> None:
        """Append one part to each of some columns."""
        for name, column in columns.items():
            parts = self._parts.setdefault(name, [])
            parts.append(column)
            if len(parts) % _MERGED == 0:  # few large pieces: memory that can be given back, or lie in a file
                parts[-_MERGED:] = [np.concatenate(parts[-_MERGED:])]

    def _complete(self, events: list[Event]) -> list[Event]:
        """The complete events of a block; the others are counted, and what names something is kept."""
        phases = Counter(map(_PHASE, events))
        if len(events) == phases["X"]:
            return events
        self.skipped.update({phase: count for phase, count in phases.items() if phase != "X"})
        if "M" in phases:
            named = [m for m in events if m.ph == "M" and m.args and bytes(m.args.name)]
            self.metadata += [(m.name, m.pid, m.tid, bytes(m.args.name)) for m in named if m.args]
        return [event for event in events if event.ph == "X"]

    def _device(self, args: list[Args], category: np.ndarray) -> None:
        """Columns that only device events have; `device_row` says which rows of the file they describe."""
        wanted = np.array([value in DEVICE_CATEGORIES or value == "" for value in self.categories])
        rows = np.flatnonzero(wanted[category])
        mine = [args[row] for row in rows.tolist()]
        self.put(device_row=rows + self.rows, task=np.array([self.tasks[a.task] for a in mine], np.int32))
        self.put(**{field: int64(list(map(attrgetter(field), mine))) for field in DEVICE_FIELDS})
        self.put(grid=triples([a.grid for a in mine]), block=triples([a.block for a in mine]))

    def _described(self, args: list[Args]) -> None:
        """Shapes of operators, and what Inductor says of the kernels that it calls."""
        shaped = [row for row, a in enumerate(args) if a.dims is not _NO_DIMS]
        self.put(shape_row=np.array(shaped, np.int64) + self.rows)
        self.put(shape=np.array([self._shape(args[row]) for row in shaped], np.int32))
        extra = [row for row, a in enumerate(args) if a.kernel_backend is not _NO_BACKEND]
        self.put(extra_row=np.array(extra, np.int64) + self.rows)
        self.put(extra=np.array([self.extras[_extra(args[row])] for row in extra], np.int32))

    def _shape(self, args: Args) -> int:
        """Code of an operator's shapes. One joined text finds it: a tuple of three would be built for every event."""
        joined = b"\0".join((args.dims, args.types, args.strides))
        code = self._known_shapes.get(joined)
        if code is None:
            code = self._known_shapes[joined] = self.shapes[bytes(args.dims), bytes(args.types), bytes(args.strides)]
        return code

    def take(self, name: str) -> np.ndarray:
        """One whole column; its parts are let go."""
        column = self.peek(name)
        self._parts.pop(name, None)
        return column

    def peek(self, name: str) -> np.ndarray:
        """One whole column, which stays."""
        parts = self._parts.get(name)
        return np.concatenate(parts) if parts else np.empty((0, 3) if name in {"grid", "block"} else 0, np.int64)


def _extra(args: Args) -> Texts:
    return bytes(args.kernel_backend), bytes(args.kernel_hash), bytes(args.kernel_file)
