"""tprof: why was the first request slow, and why is the GPU idle. Importing it imports nothing: names load lazily."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tprof.analyze import Options, Result
    from tprof.errors import SourceError, TprofError, UsageError
    from tprof.facade import Trace, load
    from tprof.prepare.at_ready import ready
    from tprof.prepare.bucketed import bucketed
    from tprof.prepare.guard import guard
    from tprof.prepare.warmup import warmup
    from tprof.record import RefusedError, annotate, request, trace

__version__ = "0.1.0"
__all__ = [
    "Options",
    "RefusedError",
    "Result",
    "SourceError",
    "TprofError",
    "Trace",
    "UsageError",
    "__version__",
    "annotate",
    "bucketed",
    "guard",
    "load",
    "ready",
    "request",
    "trace",
    "warmup",
]

_HOME = {
    "Options": "tprof.analyze",
    "Result": "tprof.analyze",
    "SourceError": "tprof.errors",
    "TprofError": "tprof.errors",
    "Trace": "tprof.facade",
    "UsageError": "tprof.errors",
    "bucketed": "tprof.prepare.bucketed",
    "guard": "tprof.prepare.guard",
    "load": "tprof.facade",
    "ready": "tprof.prepare.at_ready",
    "warmup": "tprof.prepare.warmup",
    **dict.fromkeys(("RefusedError", "annotate", "request", "trace"), "tprof.record"),
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'tprof' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """Public names."""
    return sorted(__all__)
