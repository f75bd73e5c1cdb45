"""Recording: runs inside the user's process; needs the standard library, and torch, triton and nvtx where present.

Names load lazily: commands that only ask what could be recorded load none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tprof.record.api import trace
    from tprof.record.guard import RefusedError
    from tprof.record.ranges import annotate, ready, request

__all__ = ["RefusedError", "annotate", "ready", "request", "trace"]

_HOME = {"RefusedError": "guard", "annotate": "ranges", "ready": "ranges", "request": "ranges", "trace": "api"}


def __getattr__(name: str) -> object:
    """Import a name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
