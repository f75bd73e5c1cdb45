"""Tables of a recording: compiled kernels, shape keys and specializations; each row is written once, when first seen.

Kernels are held by weak references, so that recording keeps no module on the device alive.
"""

from __future__ import annotations

import threading
import weakref
from itertools import count
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from tprof.record import describe
from tprof.record.clock import now

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.record.session import Session


class ShapeKey:
    """What a launch can be told apart by; built once, so that a warm launch only looks it up."""

    __slots__ = ("attributes", "function", "id", "lazy", "markers", "name")

    def __init__(self, key_id: int, function: str) -> None:
        self.id, self.function = key_id, function
        self.attributes: Any = None  # of the NVTX range; None where no tool listens
        self.lazy: Any = None  # stands in for Triton's launch metadata while no other tool reads it
        self.name = f"tprof::launch:{function}#{key_id}"
        self.markers: dict[int, Any] = {}  # torch.profiler's, by thread


class Kernel:
    """What is launched: its id, and the shape keys seen so far, by what tells its launches apart."""

    __slots__ = ("alive", "function", "id", "keys", "lazy", "other", "select")

    def __init__(
        self, kernel_id: int, function: str, alive: Any, select: Callable[[tuple[Any, ...]], Any] | None = None
    ) -> None:
        self.id, self.function, self.alive, self.select = kernel_id, function, alive, select or nothing
        self.keys: dict[Any, ShapeKey] = {}
        self.other: ShapeKey | None = None  # of launches past the limit, or whose key cannot be hashed
        self.lazy: Any = None  # of its shape keys


class Runner(Kernel):
    """A `CachingAutotuner` that has made its choice."""

    __slots__ = ("launchers", "names")

    launchers: list[Any]  # a new choice makes a new one
    names: list[str]  # of its arguments


class Tables:
    """All tables of one recording."""

    def __init__(self, session: Session) -> None:
        self._session, self._lock = session, threading.RLock()
        self.kernels: dict[int, Kernel] = {}  # by id() of the CompiledKernel; emptied as kernels die
        self.runners: dict[int, Runner] = {}  # the same of Inductor's CachingAutotuners
        self._hashes: dict[str, int] = {}  # ids of kernels by their hash
        self._next = {table: count(1).__next__ for table in ("kernel", "shape", "specialization")}

    def kernel(self, kernel: Any, args: tuple[Any, ...] | None = None) -> Kernel:
        """The row of a CompiledKernel, written when first seen; `args` tell which arguments are scalars."""
        with self._lock:
            row = self.kernels.get(id(kernel))
            if row is None:
                row = self._new_kernel(kernel)
            if args is not None and row.select is nothing:
                row.select = self.selector(args)
        return row

    def selector(self, args: tuple[Any, ...]) -> Callable[[tuple[Any, ...]], Any]:
        """A getter of what tells the launches of a kernel apart, besides their grid."""
        return _every_shape if self._session.settings.shapes == "always" else scalars_of(args)

    def kernel_by_hash(self, digest: str, facts: Callable[[], dict[str, Any]]) -> int:
        """Id of a kernel of which this process has no CompiledKernel; a row of `facts` is written if it is new."""
        with self._lock:
            if digest not in self._hashes:
                self._hashes[digest] = self._next["kernel"]()
                self._session.journal.add({"type": "kernel", "id": self._hashes[digest], "hash": digest, **facts()})
            return self._hashes[digest]

    def _new_kernel(self, kernel: Any) -> Kernel:
        where = id(kernel)
        alive = weakref.ref(kernel, lambda _: self.kernels.pop(where, None))
        row = self.kernels[where] = Kernel(self._next["kernel"](), describe.function_name(kernel), alive)
        facts = describe.kernel(kernel)
        self._hashes[str(facts["hash"])] = row.id
        self._session.journal.add({"type": "kernel", "id": row.id, **facts})
        return row

    def shape(self, kernel: Any, grid: Any, args: tuple[Any, ...]) -> ShapeKey:
        """The shape key of a launch that is seen for the first time."""
        row = self.kernel(kernel, args)
        row.lazy = row.lazy or describe.launch_metadata(kernel)
        named = lambda: {"grid": [int(n) for n in grid], "args": describe.arguments(kernel, args)}  # noqa: E731 - short
        return self.key(row, (tuple(grid), row.select(args)), named)

    def key(self, row: Kernel, chosen: Any, facts: Callable[[], dict[str, Any]]) -> ShapeKey:
        """The shape key of launches that `chosen` tells apart; of a new one, `facts` are grid and arguments."""
        with self._lock:
            try:
                found, full = row.keys.get(chosen), len(row.keys) >= self._session.settings.max_shapes
            except TypeError:  # cannot be hashed
                found, full = None, True
            if found is None and full:
                found = row.other = row.other or self._new_shape(row, {})
            if found is None:
                found = row.keys[chosen] = self._new_shape(row, facts())
            return found

    def _new_shape(self, row: Kernel, facts: dict[str, Any]) -> ShapeKey:
        shape = ShapeKey(self._next["shape"](), row.function)
        shape.lazy = row.lazy
        shape.attributes = self._session.nvtx.attributes("launch", f"launch:{row.function}#{shape.id}", row.id)
        self._session.journal.add({"type": "shape", "id": shape.id, "kernel": row.id, "t_ns": now(), **facts})
        return shape

    def specialization(self, function: Any, facts: dict[str, Any], span: int) -> int:
        """Write a specialization of a function."""
        row_id = self._next["specialization"]()
        record = {"type": "specialization", "id": row_id, "span": span, **describe.function(function), **facts}
        self._session.journal.add(record)
        return row_id


def nothing(_: tuple[Any, ...]) -> None:
    """Select no argument: until the first launch shows which are scalars."""


def scalars_of(args: tuple[Any, ...]) -> Callable[[tuple[Any, ...]], Any]:
    """A getter of the arguments that are numbers: which ones they are is fixed for a compiled kernel."""
    indices = [i for i, value in enumerate(args) if type(value) in (int, float, bool)]
    return itemgetter(*indices) if indices else no_scalars


def no_scalars(_: tuple[Any, ...]) -> None:
    """Select no argument: a kernel of tensors only."""


def _every_shape(args: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(describe.identity, args))
