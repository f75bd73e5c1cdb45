"""`tprof.trace`: record what runs inside it."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from tprof.record import guard, inductor_hooks, listen, ranges, rundir, torch_profiler, triton_hooks, usr1
from tprof.record import session as live
from tprof.record.imports import watcher
from tprof.record.session import Session
from tprof.record.settings import Settings, resolve
from tprof.record.threads import registry, reset_after_fork

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import TracebackType

P = ParamSpec("P")
T = TypeVar("T")

_lock = threading.RLock()
_depth = 0
_awaits_triton = False  # a recording is on, but Triton is not imported yet


class trace:  # noqa: N801 - reads as a word: `with tprof.trace():`, `@tprof.trace()`
    """Record a workload into a run directory. A context manager, and a decorator of functions and coroutines.

    Re-entrant: within another `trace` it joins that one, and its own arguments are not looked at. Recording never
    fails the workload: where the directory cannot be written, a warning is all that happens.

    Args:
        out: run directory; default `$TPROF_DIR`, else `tprof-<date>-<pid>` in the working directory.
        torch_profiler: off, cpu (operators and shapes) or gpu (also kernels) by torch.profiler.
        nvtx: emit NVTX ranges where a tool listens.
        shapes: read tensor shapes `first` (once per grid and scalars) or `always`.
        max_shapes: shape keys kept per kernel.
        interval: seconds between writes in the background.

    Raises:
        UsageError: if an argument or a `TPROF_*` variable has a value that does not exist.
    """

    def __init__(
        self,
        out: str | os.PathLike[str] | None = None,
        *,
        torch_profiler: str | None = None,
        nvtx: bool | None = None,
        shapes: str | None = None,
        max_shapes: int | None = None,
        interval: float | None = None,
    ) -> None:
        self._arguments: dict[str, Any] = {
            "out": out, "torch_profiler": torch_profiler, "nvtx": nvtx, "shapes": shapes, "max_shapes": max_shapes,
            "interval": interval,
        }  # fmt: skip
        resolve(**self._arguments)
        self.path: Path | None = None

    def __enter__(self) -> Self:
        self.path = enter(resolve(**self._arguments))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        leave()

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Record every call of `function`, which may be a coroutine function."""
        return ranges.decorate(function, lambda: trace(**self._arguments))


def enter(settings: Settings, *, await_triton: bool = False) -> Path | None:
    """Begin recording, or join the recording that is on.

    Args:
        settings: what is asked for.
        await_triton: do not import Triton: `triton_imported` is called once the program has.

    Returns:
        The run directory; None where it cannot be written.
    """
    global _depth  # noqa: PLW0603 - one recording per process
    with _lock:
        _depth += 1
        if _depth == 1:
            guard.listen(None)
            _stop_listening()
            try:
                _begin(Session(settings, rundir.create(settings)), await_triton=await_triton)
            except OSError as error:
                guard.warn("not-recorded", f"nothing is recorded: {settings.out} cannot be written ({error})")
                _listen()
        return live.active.directory if live.active and live.active.written else None


def _begin(session: Session, *, await_triton: bool) -> None:
    global _awaits_triton  # noqa: PLW0603 - as above
    guard.listen(session.note)
    registry.begin()
    live.active = session
    _awaits_triton = await_triton and "triton" not in sys.modules
    if not _awaits_triton:
        triton_hooks.install()
    guard.call("inductor", inductor_hooks.install)
    guard.call("torch_profiler", torch_profiler.start, session.settings.torch_profiler)
    session.beacon("start")
    session.flush()
    session.listener = guard.call("signal", usr1.Listener, session.directory, session.stem)
    session.start()


def triton_imported() -> None:
    """The program has imported Triton: what waits for it begins."""
    global _awaits_triton  # noqa: PLW0603 - as above
    with _lock:
        if _awaits_triton and live.active is not None:
            _awaits_triton = False
            triton_hooks.install()


def leave() -> None:
    """End the recording if this is the outermost `trace`."""
    global _depth  # noqa: PLW0603
    with _lock:
        _depth = max(0, _depth - 1)
        session = _recording()
        if _depth or session is None:
            return
        session.beacon("end")
        guard.call("torch_profiler", torch_profiler.stop, session.directory / f"{session.stem}.torch.json.gz")
        guard.call("inductor", inductor_hooks.remove)
        triton_hooks.remove()
        live.active = None
        guard.call("close", session.close)
        guard.listen(None)
        _listen()


# ---- without a recording, for those who listen


def watch(listener: listen.Listener) -> None:
    """`listener` hears of cold events from now on, whether they are recorded or not."""
    with _lock:
        listen.add(listener)
        _listen()


def unwatch(listener: listen.Listener) -> None:
    """`listener` hears no more; if it was the last and nothing is recorded, Triton is left as it was."""
    with _lock:
        listen.remove(listener)
        if not listen.listeners:
            _stop_listening()


def _recording() -> Session | None:
    return live.active if live.active is not None and live.active.written else None


def _listen() -> None:
    """Hooks write nowhere, and tell the listeners; a recording does both."""
    if live.active is None and listen.listeners:
        registry.begin()
        live.active = Session(resolve(), None)
        watcher.watch("triton", _hook_triton)
        guard.call("inductor", inductor_hooks.install)


def _hook_triton(_: Any) -> None:
    triton_hooks.install()


def _stop_listening() -> None:
    if live.active is not None and not live.active.written:
        watcher.forget([_hook_triton])
        guard.call("inductor", inductor_hooks.remove)
        triton_hooks.remove()
        live.active = None


def at_exit() -> None:
    """The program ends within a `trace`: what waits goes to disk."""
    global _depth  # noqa: PLW0603
    for listener in tuple(listen.listeners):
        listen.remove(listener)
    _stop_listening()
    if live.active is not None:
        _depth = 1
        leave()


def _before_fork() -> None:
    _lock.acquire()
    if (session := _recording()) is not None:
        guard.call("fork", session.stop)  # a fork copies no threads: none of ours may be in the middle of anything


def _after_fork_in_parent() -> None:
    if (session := _recording()) is not None:
        guard.call("fork", session.start)
    _lock.release()


def _after_fork_in_child() -> None:
    _lock.release()
    reset_after_fork()
    parent = _recording()
    if parent is None:
        return
    live.active = guard.call("fork", _session_of_child, parent)


def _session_of_child(parent: Session) -> Session:
    parent.journal.file.close()  # the child's copies of the descriptors; what it has open there is not its own
    parent.launches.file.close()
    session = parent.successor = Session(parent.settings, parent.directory, forked_from=parent.pid)
    guard.listen(session.note)
    session.beacon("start")
    ranges.inherit(session)
    session.listener = guard.call("signal", usr1.Listener, session.directory, session.stem, parent.listener)
    session.start()
    util = sys.modules.get("multiprocessing.util")
    if util is not None:  # its children end by `os._exit`, but run finalizers, registered once they are set up
        util.register_after_fork(session, lambda _: util.Finalize(None, at_exit, exitpriority=0))
    return session


atexit.register(at_exit)
os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
