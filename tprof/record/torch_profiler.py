"""torch.profiler alongside the recording, its trace exported into the run directory."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

from tprof.record import guard

_running: list[Any] = []


def start(mode: str) -> None:
    """Start torch.profiler for `cpu` (operators and shapes) or `gpu` (also kernels); `off` does nothing."""
    if mode == "off" or _is_compile_worker():
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
    if mode == "gpu" and _was_forked_from_cuda():
        guard.warn("forked-cuda", "this process was forked from one that used CUDA and cannot: operators only")
    elif mode == "gpu":
        kinds.add(profiler.ProfilerActivity.CUDA)
    profile = profiler.profile(activities=kinds, record_shapes=True)
    with warnings.catch_warnings():
        # Torch 2.11 warns at every start that a next cycle will forget this one. There is none, and where warnings are
        # errors nothing would be profiled.
        warnings.filterwarnings("ignore", "Warning: Profiler clears events")
        profile.start()
    _running.append(profile)


def _is_compile_worker() -> bool:
    """Whether this is one of Inductor's compile workers: it uses no GPU, and profiling it would make it do so."""
    return Path(sys.argv[0] if sys.argv else "").parts[-3:-1] == ("_inductor", "compile_worker")


def _was_forked_from_cuda() -> bool:
    """Whether CUDA cannot be used because the parent had initialized it before the fork."""
    cuda = sys.modules.get("torch.cuda")
    return bool(cuda and getattr(cuda, "_is_in_bad_fork", bool)())


def stop(path: Path) -> None:
    """Stop the profiler that `start` started, and write its trace."""
    if _running:
        profile = _running.pop()
        profile.stop()
        profile.export_chrome_trace(str(path))
        path.chmod(0o600)
