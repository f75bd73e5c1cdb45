"""Inductor's compile workers: processes of a pool, perhaps older than the recording, that compile for this one.

A worker records into a journal of its own in the same run directory, as every process of a run does: so the begin of a
compile is on disk before it starts, failures are there too, and what the worker hands back (which Inductor keeps in
its caches) is what it would be without tprof.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import tprof
from tprof.record import session as live

Method = Callable[..., Any]

# Evaluated where the replacement is unpickled. A worker may have been started before tprof was importable, or find
# another package of that name: then it compiles as it would without us.
UNPICKLE: Final = """(
    __import__("tprof.record.in_worker", fromlist=["InWorker"]).InWorker(original, **where)
    if getattr(__import__("importlib.util", fromlist=["find_spec"]).find_spec("tprof"), "origin", None) == origin
    else original
)"""


class WorkerCompile:
    """Stands in for `torch._inductor.async_compile._worker_compile_triton`, which is pickled and sent to a worker.

    Args:
        original: what was there.
    """

    def __init__(self, original: Method) -> None:
        self._original = original

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """In this process, all is recorded as it is."""
        return self._original(*args, **kwargs)

    def __reduce__(self) -> Any:
        session = live.active
        if session is None or not session.written:
            return eval, ("original", {"original": self._original})
        where = {"directory": str(session.directory), "settings": session.settings.to_dict(), "parent": session.pid}
        return eval, (UNPICKLE, {"original": self._original, "origin": tprof.__file__, "where": where})
