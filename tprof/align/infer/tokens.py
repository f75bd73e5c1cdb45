"""The device API calls of each thread, in order, with what each put on the device: the input of every inference rule.

An *op* is what was enqueued, as far as a trace can tell two apart: (name, registers, block, shared memory, grid,
bytes).
Registers, block and shared memory do not identify a compiled variant: two specializations can share all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tprof.align.calls import ALLOC, INIT, NOT_A_CALL, OTHER, call_classes, is_kind
from tprof.align.links import first_events
from tprof.align.paths import FILL, kernel_path
from tprof.align.ranges import looked_up
from tprof.model import Trace, codes, first_rows, int3, ints, refine

SMALL_COPY = 64  # bytes; a constant that a compiler copies to the device while it traces
FLUSH_BLOCKS = 256  # a fill of fewer blocks cannot flush a cache: it resets a counter or a small buffer


@dataclass(frozen=True)
class Ops:
    """What launches put on the device; arrays have shape (ops + 1,).

    The last entry, index -1, is for a launch whose work was not recorded: nothing holds of it.
    """

    name: list[str]
    kernel: np.ndarray  # a kernel, no memory operation
    fill: np.ndarray  # looks like a flush: writes a constant
    flush: np.ndarray  # can only be the flush of a benchmark loop: writes integers, and many of them
    triton: np.ndarray  # a kernel that Triton may have compiled, by its name
    inductor: np.ndarray  # a kernel that Inductor generated, by its name
    small: np.ndarray  # a copy of a few bytes


@dataclass(frozen=True)
class Tokens:
    """Calls of one thread in time order; arrays have shape (calls,)."""

    thread: int
    row: np.ndarray  # row of `host`
    kind: np.ndarray  # `calls` class
    start: np.ndarray
    end: np.ndarray
    op: np.ndarray  # first device operation that the call enqueued, -1 for none

    def __len__(self) -> int:
        """Number of calls."""
        return len(self.row)


def device_ops(trace: Trace) -> tuple[Ops, np.ndarray]:
    """All distinct operations, and the operation of each device event, shape (device rows,)."""
    device = trace.device
    name, names = codes(device, "name")
    kind, _ = codes(device, "kind")
    moved, grid = ints(device, "bytes"), int3(device, "grid")
    key = name.astype(np.int64)
    for part in (
        kind,
        ints(device, "registers"),
        ints(device, "shared_bytes"),
        moved,
        *int3(device, "block").T,
        *grid.T,
    ):
        key = refine(key, part)
    op, first = key, first_rows(key)
    named = [names[i] for i in name[first]]
    is_kernel = is_kind(device, "kernel")[first]
    path = np.array([kernel_path(n) for n in named], object)
    fill = np.array([bool(FILL.search(n)) for n in named], bool)
    blocks = grid[first].prod(axis=1, dtype=np.int64)
    integer = np.array(["<int>" in n or "FillFunctor<int" in n for n in named], bool)
    ops = Ops(
        name=[*named, "unknown"],
        kernel=_or_nothing(is_kernel),
        fill=_or_nothing(fill),
        flush=_or_nothing(fill & is_kernel & integer & ((blocks < 0) | (blocks >= FLUSH_BLOCKS))),
        triton=_or_nothing(is_kernel & np.isin(path, ["triton", "inductor"])),
        inductor=_or_nothing(is_kernel & (path == "inductor")),
        small=_or_nothing(~is_kernel & (moved[first] >= 0) & (moved[first] <= SMALL_COPY)),
    )
    return ops, op


def _or_nothing(flags: np.ndarray) -> np.ndarray:
    return np.append(flags, False)


def thread_tokens(trace: Trace, op: np.ndarray) -> list[Tokens]:
    """Tokens of every thread that called the device API."""
    host = trace.host
    kind = call_classes(host)
    rows = np.flatnonzero((kind != NOT_A_CALL) & ~np.isin(kind, [OTHER, ALLOC, INIT]))
    thread, start, end = (ints(host, c)[rows] for c in ("thread", "start_ns", "end_ns"))
    order = np.lexsort((start, thread))
    rows, thread, start, end = rows[order], thread[order], start[order], end[order]
    first_op = looked_up(op, first_events(trace)[rows])
    cuts = np.flatnonzero(np.diff(thread)) + 1
    spans = zip([0, *cuts.tolist()], [*cuts.tolist(), len(rows)], strict=True)
    return [
        Tokens(int(thread[a]), rows[a:b], kind[rows[a:b]], start[a:b], end[a:b], first_op[a:b])
        for a, b in spans
        if b > a
    ]
