"""Recording of a process that was started under `tprof record`: begins as soon as Triton is there, ends with it."""

from __future__ import annotations

import os
import sys
from typing import Final

from tprof.record import api, guard, startup, support
from tprof.record import session as live
from tprof.record.bootstrap import VARIABLE
from tprof.record.settings import resolve


def imported(name: str, imports: list[tuple[str, int, int]]) -> bool:
    """The process has imported `name`: triton, torch or tprof.record. True if it may not be recorded here.

    Args:
        name: of the module.
        imports: what `startup.imports` holds, which goes on growing.
    """
    startup.imports = imports
    refusal = guard.call("autoload", support.refusal)
    if refusal:
        guard.warn("refused", refusal)
    else:
        guard.call("autoload", _imported, name)
    return bool(refusal)


def _imported(name: str) -> None:
    if not _begun:
        _begun.append(name)
        api.enter(resolve(out=os.environ[VARIABLE]), await_triton=True)
        _end_with_multiprocessing()
    if name == "triton":
        api.triton_imported()
    if live.active is not None:
        startup.write(live.active)


_begun: Final[list[str]] = []


def _end_with_multiprocessing() -> None:
    """A child of multiprocessing may end by `os._exit`, without what `atexit` holds, but runs its finalizers."""
    process, util = sys.modules.get("multiprocessing.process"), sys.modules.get("multiprocessing.util")
    if process is not None and util is not None and process.parent_process() is not None:
        util.Finalize(None, api.at_exit, exitpriority=0)
