"""What a compile worker of Inductor runs: the real thing, recorded into a journal of the worker's own."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tprof.record import guard, inductor_hooks, rundir, triton_hooks
from tprof.record import session as live
from tprof.record.session import Session
from tprof.record.settings import Settings

Method = Callable[..., Any]


class InWorker:
    """What a worker calls: the real thing, recorded.

    Args:
        original: the real thing.
        directory: of the run.
        settings: of the recording.
        parent: pid of the process that this one compiles for.
    """

    def __init__(self, original: Method, directory: str, settings: dict[str, Any], parent: int) -> None:
        self._original, self._parent = original, parent
        self._settings = Settings(out=Path(directory), **{**settings, "torch_profiler": "off"})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Do the task."""
        with recording(self._settings, self._parent):
            return self._original(*args, **kwargs)


@contextlib.contextmanager
def recording(settings: Settings, parent: int) -> Iterator[None]:
    """Record a block for the process `parent`, unless this process is being recorded already."""
    session = guard.call("worker", _session, settings, parent) if live.active is None else None
    if session is None:
        yield
        return
    guard.listen(session.note)
    live.active = session
    triton_hooks.install()
    inductor_hooks.install()
    try:
        yield
    finally:
        inductor_hooks.remove()
        triton_hooks.remove()
        live.active = None
        session.flush()
        guard.listen(None)


def _session(settings: Settings, parent: int) -> Session:
    """One per worker and run: a worker does many tasks, and is ended without notice."""
    key = (os.getpid(), settings.out)
    if key not in _sessions:
        _sessions.clear()
        _sessions[key] = Session(settings, rundir.create(settings), worker_of=parent)
    return _sessions[key]


_sessions: Final[dict[tuple[int, Path], Session]] = {}
