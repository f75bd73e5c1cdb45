"""torch.profiler alongside the recording, its trace exported into the run directory."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tprof.record import guard

if TYPE_CHECKING:
    from pathlib import Path

_running: list[Any] = []


def start(mode: str) -> None:
    """Start torch.profiler for `cpu` (operators and shapes) or `gpu` (also kernels); `off` does nothing."""
    if mode == "off":
        return
    try:
        from torch import profiler  # noqa: PLC0415 - only on request
    except ImportError:
        guard.warn("no-torch", "torch is not installed here: torch.profiler cannot be run")
        return
    if getattr(sys.modules["torch.autograd.profiler"], "_is_profiler_enabled", False):
        guard.warn("profiler-busy", "torch.profiler is running already: tprof leaves it alone and starts none")
        return
    kinds = {profiler.ProfilerActivity.CPU}
    if mode == "gpu":
        kinds.add(profiler.ProfilerActivity.CUDA)
    profile = profiler.profile(activities=kinds, record_shapes=True)
    profile.start()
    _running.append(profile)


def stop(path: Path) -> None:
    """Stop the profiler that `start` started, and write its trace."""
    if _running:
        profile = _running.pop()
        profile.stop()
        profile.export_chrome_trace(str(path))
        path.chmod(0o600)
