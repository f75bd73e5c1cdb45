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
    """A compiled kernel: its id, and the shape keys seen so far."""

    __slots__ = ("alive", "function", "id", "keys", "name", "other", "select")

    def __init__(self, kernel_id: int, kernel: Any, alive: Any, select: Callable[[tuple[Any, ...]], Any]) -> None:
        self.id, self.alive, self.select = kernel_id, alive, select
        self.name, self.function = str(kernel.name), describe.function_name(kernel)
        self.keys: dict[Any, ShapeKey] = {}
        self.other: ShapeKey | None = None  # of launches past the limit, or whose key cannot be hashed


class Tables:
    """All tables of one recording."""

    def __init__(self, session: Session) -> None:
        self._session, self._lock = session, threading.RLock()
        self.kernels: dict[int, Kernel] = {}  # by id() of the CompiledKernel; emptied as kernels die
        self.runners: dict[int, Any] = {}  # the same of Inductor's CachingAutotuners (inductor_launch.Runner)
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
        row = self.kernels[where] = Kernel(self._next["kernel"](), kernel, alive, nothing)
        facts = describe.kernel(kernel)
        self._hashes[str(facts["hash"])] = row.id
        self._session.journal.add({"type": "kernel", "id": row.id, **facts})
        return row

    def shape(self, kernel: Any, grid: Any, args: tuple[Any, ...]) -> ShapeKey:
        """The shape key of a launch that is seen for the first time."""
        row = self.kernel(kernel, args)
        with self._lock:
            key = hashable((tuple(grid), row.select(args)))
            found = row.keys.get(key) if key else row.other
            if found is not None:
                return found
            if key is None or len(row.keys) >= self._session.settings.max_shapes:
                row.other = row.other or self._new_shape(row, kernel, None, None)
                return row.other
            row.keys[key] = self._new_shape(row, kernel, grid, args)
            return row.keys[key]

    def _new_shape(self, row: Kernel, kernel: Any, grid: Any, args: tuple[Any, ...] | None) -> ShapeKey:
        facts: dict[str, Any] = {}
        if args is not None:
            facts = {"grid": [int(n) for n in grid], "args": describe.arguments(kernel, args)}
        shape = self.new_shape(row.id, row.function, facts)
        shape.lazy = describe.launch_metadata(kernel)
        return shape

    def new_shape(self, kernel_id: int, function: str, facts: dict[str, Any]) -> ShapeKey:
        """Write a shape key: `facts` are its grid and arguments."""
        shape = ShapeKey(self._next["shape"](), function)
        shape.attributes = self._session.nvtx.attributes("launch", f"launch:{function}#{shape.id}", kernel_id)
        self._session.journal.add({"type": "shape", "id": shape.id, "kernel": kernel_id, "t_ns": now(), **facts})
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


def hashable(key: Any) -> Any:
    """`key`, or None where it cannot be hashed."""
    try:
        hash(key)
    except TypeError:
        return None
    return key
