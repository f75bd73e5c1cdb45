"""What each thread is doing: its open spans, its open launch, and its launches that wait for the writer."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tprof.record.spans import Span


MAX_UNNAMED: Final = 10_000  # threads that came while nothing was recorded


class ThreadState:
    """State of one thread. The hot path reads and writes its slots; nobody else but the writer touches `launches`."""

    __slots__ = (
        "__weakref__", "candidate", "cold", "cold_name", "cold_ns", "launches", "marker", "name", "open", "sample",
        "source", "stack", "t_enter", "tid", "tuning",
    )  # fmt: skip

    def __init__(self) -> None:
        self.tid, self.name = threading.get_native_id(), threading.current_thread().name
        self.stack: list[Span] = []  # open cold spans, innermost last
        self.launches: list[int] = []  # journal.FIELDS ints per launch
        self.open: Any = None  # shape key of the launch between its enter and its exit
        self.t_enter = 0
        self.candidate = 0  # id of the autotune candidate that is being timed
        self.cold = 0  # id of the last cold span since the last launch, the function it was for, and its end
        self.cold_name, self.cold_ns = "", 0
        self.tuning: list[Any] = []  # autotuners in their cold path, with their spans
        self.source = "?"  # function whose source is being compiled
        self.sample: Any = None  # to be called once the driver has taken the launch whose kernel is being timed
        self.marker: Any = None  # torch.profiler's marker of the open launch

    def forget(self) -> None:
        """Let go of what an earlier recording left open: its ids mean nothing in the next."""
        self.stack.clear()
        self.tuning.clear()
        self.open, self.candidate, self.cold = None, 0, 0


class _Registry:
    """Every thread that recorded something, so that the writer finds its launches; dead threads are let go."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.threads: list[tuple[weakref.ref[ThreadState], int, str, list[int]]] = []
        self._unnamed: list[tuple[int, str]] = []

    def add(self, state: ThreadState) -> None:
        with self._lock:
            self.threads.append((weakref.ref(state), state.tid, state.name, state.launches))
            self._unnamed.append((state.tid, state.name))
            del self._unnamed[:-MAX_UNNAMED]

    def begin(self) -> None:
        """A recording begins: drop what is left of an earlier one, and name all threads again."""
        self.drain()
        with self._lock:
            for alive, *_ in self.threads:
                if (state := alive()) is not None:
                    state.forget()
            self._unnamed[:] = [(tid, name) for _, tid, name, _ in self.threads]

    def names(self) -> list[tuple[int, str]]:
        """Take (tid, name) of the threads that came since the last call."""
        with self._lock:
            taken = list(self._unnamed)
            self._unnamed.clear()
        return taken

    def drain(self) -> list[tuple[int, list[int]]]:
        """Take the launches of all threads: (tid, flat ints). An owner may append meanwhile: only whole rows move."""
        taken = []
        for _, tid, _, launches in list(self.threads):
            if count := len(launches):
                taken.append((tid, launches[:count]))
                del launches[:count]
        with self._lock:
            self.threads[:] = [entry for entry in self.threads if entry[3] or entry[0]() is not None]
        return taken


class _Local(threading.local):
    def __init__(self) -> None:
        self.state = ThreadState()
        registry.add(self.state)


registry = _Registry()
local = _Local()


def reset_after_fork() -> None:
    """In a forked child only the forking thread is left, and what it had open belongs to the parent."""
    registry.__init__()  # type: ignore[misc]  # the parent's lock may be held by a thread that is gone
    local.state = ThreadState()
    registry.add(local.state)
