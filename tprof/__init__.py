"""tprof: why was the first request slow, and why is the GPU idle. Importing it imports nothing: names load lazily."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tprof.analyze import Options, Result
    from tprof.errors import SourceError, TprofError, UsageError
    from tprof.facade import Trace, load
    from tprof.record import annotate, ready, request, trace

__version__ = "0.1.0"
__all__ = [
    "Options",
    "Result",
    "SourceError",
    "TprofError",
    "Trace",
    "UsageError",
    "__version__",
    "annotate",
    "load",
    "ready",
    "request",
    "trace",
]

_HOME = {
    "Options": "tprof.analyze",
    "Result": "tprof.analyze",
    "SourceError": "tprof.errors",
    "TprofError": "tprof.errors",
    "Trace": "tprof.facade",
    "UsageError": "tprof.errors",
    "load": "tprof.facade",
    **dict.fromkeys(("annotate", "ready", "request", "trace"), "tprof.record"),
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'tprof' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    """Public names."""
    return sorted(__all__)
