"""Calls of compiled kernels: every launch with its kernel, its shape key, and what the device made of it.

Where tprof's recorder ran, its launches are the calls and their arguments the shape. Elsewhere a call is an execution
of a Triton kernel, and its shape the operator's inputs if they were recorded, else grid and block: a poor key, since
two shapes may share it and tuning changes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tprof.align.calls import holds, is_kind
from tprof.align.captures import asked_by
from tprof.align.ranges import enclosing, looked_up, open_at
from tprof.analyze.busy import event_purposes
from tprof.analyze.shape_text import split_grid
from tprof.events import PURPOSES
from tprof.intervals import NONE
from tprof.model import Trace, codes, first_rows, int3, ints, refine

if TYPE_CHECKING:
    import pyarrow as pa

_COMPILED = ("triton", "inductor")


class ShapeKey(NamedTuple):
    """One kernel with one set of inputs.

    Attributes:
        kernel: name on the device.
        shape: arguments, operator inputs, or grid and block, as text. A recorded key leaves out the grid: tuning gives
            every candidate one of its own.
        source: what the shape was taken from: `arguments`, `operator` or `grid`.
    """

    kernel: str
    shape: str
    source: str


@dataclass(frozen=True)
class Calls:
    """Launches of compiled kernels by (start, row); arrays have shape (calls,).

    `thread` is -1 where no launch is known; then `start` is the device's. `wall_ns` is the launch call on the host,
    `device_ns` the execution; -1 is not known. `keys` is what `key` points to, `grids` the grids of each key's work.
    """

    key: np.ndarray
    start: np.ndarray
    end: np.ndarray
    thread: np.ndarray
    tuning: np.ndarray  # a repetition of a benchmark
    cold: np.ndarray  # flagged so by the recorder
    request: np.ndarray  # row of `host` of the request that it served
    device_ns: np.ndarray
    keys: list[ShapeKey]
    grids: list[list[str]]

    def __len__(self) -> int:
        """Number of calls."""
        return len(self.key)

    @cached_property
    def wall_ns(self) -> np.ndarray:
        """Length of the launch call on the host, ns; -1 where the launch is not known."""
        return np.where(self.thread == NONE, NONE, self.end - self.start)


def find_calls(trace: Trace) -> Calls:
    """All calls of a trace: recorded launches, and executions of Triton kernels in processes without a recorder."""
    launched, ran = _recorded(trace), _executed(trace)
    keys: dict[ShapeKey, int] = {}
    place = [np.array([keys.setdefault(k, len(keys)) for k in part.spelled] or [0]) for part in (launched, ran)]
    key = np.concatenate([at[part.code] for at, part in zip(place, (launched, ran), strict=True)])
    columns = [np.concatenate(pair) for pair in zip(launched.columns, ran.columns, strict=True)]
    grid = np.concatenate([launched.code, ran.code + len(launched.grid)])
    work = ~columns[3].astype(bool)
    grids: list[list[str]] = [[] for _ in keys]
    names = [*launched.grid, *ran.grid]
    for pair in np.unique(key[work] * len(names) + grid[work]).tolist():
        k, g = divmod(pair, len(names))
        grids[k] += [name for name in (names[g],) if name and name not in grids[k]]
    order = np.argsort(columns[0], kind="stable")
    start, end, thread, tuning, cold, request, device = (c[order] for c in columns)
    return Calls(
        key[order], start, end, thread, tuning.astype(bool), cold.astype(bool), request, device, list(keys), grids
    )


class _Part(NamedTuple):
    """Calls from one kind of evidence: `code` points into `spelled` (keys) and `grid` (their grids)."""

    code: np.ndarray
    spelled: list[ShapeKey]
    grid: list[str | None]
    columns: tuple[np.ndarray, ...]  # start, end, thread, tuning, cold, request, device_ns


def _recorded(trace: Trace) -> _Part:
    """Launches that the recorder saw and that reached the driver."""
    host = trace.host
    start, end, thread = (ints(host, c) for c in ("start_ns", "end_ns", "thread"))
    rows = np.flatnonzero(is_kind(host, "launch") & (end > start))
    (kernel, kernels), (shape, shapes) = (_label(host, c) for c in ("kernel", "shape_key"))
    code, first = _numbered(kernel[rows], shape[rows])
    texts = [(kernels[kernel[r]], split_grid(shapes[shape[r]])) for r in rows[first].tolist()]
    columns = (
        start[rows],
        end[rows],
        thread[rows],
        _inside_candidates(trace, start[rows], thread[rows]),
        ints(host, "cold")[rows] == 1,
        ints(host, "request")[rows],
        _device_times(trace, rows),
    )
    return _Part(
        code, [ShapeKey(k, shape, "arguments") for k, (_, shape) in texts], [g for _, (g, _) in texts], columns
    )


def _executed(trace: Trace) -> _Part:
    """Executions of compiled kernels in processes that no recorder saw."""
    host, device = trace.host, trace.device
    recorded = np.unique(ints(host, "pid")[is_kind(host, "launch")])
    compiled = holds(device, "path", _COMPILED.__contains__)
    rows = np.flatnonzero(compiled & ~np.isin(ints(device, "pid"), recorded))
    launch = ints(device, "launch")[rows]
    shapes, texts = codes(host, "shape_key")
    shape = looked_up(shapes, enclosing(host, asked_by(device)[rows], shapes != NONE))
    grid, block = (int3(device, c)[rows] for c in ("grid", "block"))
    name, names = codes(device, "name")
    code, first = _numbered(
        name[rows], shape, *(np.where(shape == NONE, size, 0) for size in (*grid.T, *block.T))
    )  # an operator's inputs are the key whatever the grid
    spelled = [
        ShapeKey(names[name[rows[i]]], texts[shape[i]], "operator")
        if shape[i] != NONE
        else ShapeKey(names[name[rows[i]]], f"grid {_sizes(grid[i])} block {_sizes(block[i])}", "grid")
        for i in first.tolist()
    ]
    begin, finish = ints(device, "start_ns")[rows], ints(device, "end_ns")[rows]
    columns = (
        looked_up(ints(host, "start_ns"), launch, begin),
        looked_up(ints(host, "end_ns"), launch, begin),
        looked_up(ints(host, "thread"), launch),
        event_purposes(trace)[rows] == PURPOSES.index("tuning"),
        np.zeros(len(rows), bool),
        looked_up(ints(host, "request"), launch),
        finish - begin,
    )
    return _Part(code, spelled, [_sizes(grid[i]) for i in first.tolist()], columns)


def _label(host: pa.Table, column: str) -> tuple[np.ndarray, list[str]]:
    """A label column as (codes, values) in which a null is the last value, `?`."""
    code, names = codes(host, column)
    return np.where(code == NONE, len(names), code).astype(np.int64), [*names, "?"]


def _numbered(*parts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes that tell apart what any of the columns tells apart, and the first row of each code."""
    code = np.zeros(len(parts[0]), np.int64)
    for part in parts:
        code = refine(code, part.astype(np.int64) + 1)
    return code, first_rows(code)


def _sizes(triple: np.ndarray) -> str:
    return "x".join(map(str, triple.tolist())) if (triple >= 0).all() else "?"


def _inside_candidates(trace: Trace, start: np.ndarray, thread: np.ndarray) -> np.ndarray:
    """Whether each launch began while a candidate was timed on its thread."""
    candidates = trace.candidates
    return open_at(candidates, np.arange(len(candidates)), start, thread) != NONE


def _device_times(trace: Trace, rows: np.ndarray) -> np.ndarray:
    """Device time of each recorded launch: the k-th of a key is the k-th execution that `align` gave this key.

    -1 where a key has another number of executions: a profiler that began later, or a captured graph.
    """
    host, launch = trace.host, ints(trace.device, "launch")
    label = [_label(host, c)[0] for c in ("kernel", "shape_key")]
    ran = np.flatnonzero((launch != NONE) & is_kind(trace.device, "kernel"))
    known, _ = _numbered(*(np.concatenate([c[rows], c[launch[ran]]]) for c in label))
    mine, theirs = known[: len(rows)], known[len(rows) :]
    size = len(known)
    same = np.bincount(mine, minlength=size) == np.bincount(theirs, minlength=size)
    out = np.full(len(rows), NONE)
    first = ints(host, "start_ns")
    here, there = np.flatnonzero(same[mine]), np.flatnonzero(same[theirs])
    here = here[np.lexsort((first[rows[here]], mine[here]))]
    there = there[np.lexsort((first[launch[ran[there]]], theirs[there]))]
    out[here] = (ints(trace.device, "end_ns") - ints(trace.device, "start_ns"))[ran[there]]
    return out
