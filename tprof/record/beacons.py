"""Beacons: the same instant named in the journal, in NVTX and in torch.profiler, so that their clocks can be joined."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from tprof.record import clock, guard

if TYPE_CHECKING:
    from tprof.record.nvtx import Ranges


def emit(nvtx: Ranges, when: str) -> dict[str, Any]:
    """Emit a beacon; `when` is start, tick or end.

    Returns:
        The journal's record of it. Other producers carry it as a range named
        `tprof::clock:<t_ns>:<wall_ns>`, begun as soon as the clocks were read.
    """
    pair = clock.pair()
    name = f"tprof::clock:{pair.t_ns}:{pair.wall_ns}"
    guard.call("nvtx", nvtx.beacon, name)
    guard.call("record_function", _record_function, name)
    return {"type": "clock", "when": when, **pair._asdict()}


def _record_function(name: str) -> None:
    profiler = sys.modules.get("torch.autograd.profiler")
    if profiler is not None and getattr(profiler, "_is_profiler_enabled", False):
        with profiler.record_function(name):
            pass


def devices() -> list[dict[str, Any]]:
    """The GPUs as torch counts them; empty until the workload itself has initialized CUDA, which this never does."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return []
    return [_device(torch, ordinal) for ordinal in range(torch.cuda.device_count())]


def _device(torch: Any, ordinal: int) -> dict[str, Any]:
    properties = torch.cuda.get_device_properties(ordinal)
    return {
        "ordinal": ordinal,
        "name": properties.name,
        "uuid": str(getattr(properties, "uuid", "")) or None,
        "capability": properties.major * 10 + properties.minor,
        "memory_bytes": properties.total_memory,
    }
