"""Compiles specializations of a kernel on a thread of their own, while something else serves their shapes."""

from __future__ import annotations

import atexit
import functools
import queue
import threading
from typing import TYPE_CHECKING, Any, Final

from tprof.prepare import libraries
from tprof.prepare.mocks import Pointer
from tprof.record import guard
from tprof.record.ranges import annotate

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

MAX_KEYS: Final = 1024  # specializations of a kernel; further ones stay with what serves them


class Background:
    """One thread, started when it is first needed; oldest first, each key once. A failure is named and leaves it out.

    Args:
        kernel: a Triton function that is launched by `run`.
        name: of the kernel.
    """

    def __init__(self, kernel: Any, name: str) -> None:
        self._kernel, self._name = kernel, name
        self._done: dict[Hashable, bool] = {}  # by key, of all that were asked for: whether they may be launched
        self._queue: queue.SimpleQueue[tuple[Hashable, Callable[[], None]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._ending = False
        self._lock = threading.Lock()

    def is_ready(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether a launch of these arguments would compile nothing; if it would, the thread begins to."""
        device = libraries.device()
        key = (device, *map(specialized, args), *((name, specialized(value)) for name, value in kwargs.items()))
        if key not in self._done and len(self._done) < MAX_KEYS:
            with self._lock:
                if key not in self._done:
                    self._done[key] = False
                    like = {name: stand_in(value) for name, value in kwargs.items()}
                    self._queue.put((key, functools.partial(self._compile, device, [*map(stand_in, args)], like)))
                    self._start()
        return self._done.get(key, False)

    def _start(self) -> None:
        if self._thread is None:
            atexit.register(self._end)
        if self._thread is None or not self._thread.is_alive():  # it does not survive a fork
            self._thread = threading.Thread(target=self._work, name="tprof-background", daemon=True)
            self._thread.start()

    def _end(self) -> None:
        """Wait for the compile that is going on: a process that ends in the middle of LLVM aborts."""
        self._ending = True
        self._queue.put(None)
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while (asked := self._queue.get()) is not None and not self._ending:
            key, compile_ = asked
            try:
                compile_()
            except guard.FAILURES as error:
                problem = f"{type(error).__name__}: {error}"[:300]
                guard.warn("background", f"{self._name} could not be compiled in the background ({problem})")
            else:
                self._done[key] = True

    def _compile(self, device: int, args: list[Any], kwargs: dict[str, Any]) -> None:
        libraries.use(device)
        with annotate(f"{self._name}: compile in the background"), guard.asked_for():
            compiled = self._kernel.run(*args, grid=(1, 1, 1), warmup=True, **kwargs)
            if hasattr(type(compiled), "result"):  # Triton compiles asynchronously
                compiled = compiled.result()
            compiled._init_handles()  # noqa: SLF001 - what its first launch does


def specialized(value: Any) -> Hashable:
    """What Triton may compile another variant for: at least as fine as its own distinction."""
    if type(value) is int:
        width = 32 if -(2**31) <= value < 2**31 else 64 if -(2**63) <= value < 2**63 else 65
        return (int, width, value == 1, value % 16 == 0)
    if hasattr(value, "data_ptr"):
        return (str(value.dtype), value.data_ptr() % 16 == 0)
    if isinstance(value, tuple | list):
        return tuple(map(specialized, value))
    return float if type(value) is float else (type(value), value)


def stand_in(value: Any) -> Any:
    """Of a tensor what its specialization depends on, so that waiting for a compile keeps no memory of a device."""
    return Pointer(value.dtype, value.data_ptr() % 16) if hasattr(value, "data_ptr") else value
