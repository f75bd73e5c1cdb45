"""Metrics of a server that runs: compiling, tuning and kernels apart. Light: no table library, nothing that draws.

`Prometheus` needs prometheus-client, `OpenTelemetry` opentelemetry-api: `pip install 'triton-tprof[metrics]'`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tprof.metrics.otel import OpenTelemetry
    from tprof.metrics.prometheus import Prometheus

__all__ = ["OpenTelemetry", "Prometheus"]
_HOME: Final = {"OpenTelemetry": "tprof.metrics.otel", "Prometheus": "tprof.metrics.prometheus"}


def __getattr__(name: str) -> object:
    """Import a class, and the library that it needs, when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'tprof.metrics' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
