"""What each thread was doing, as a file for speedscope: one profile per thread, one frame per phase and basis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import numpy as np

from tprof.align.ranges import by_thread
from tprof.model import codes, ints
from tprof.present import words

if TYPE_CHECKING:
    import pyarrow as pa

    from tprof.model import Trace

_SCHEMA: Final = "https://www.speedscope.app/file-format-schema.json"


def render(trace: Trace, phases: pa.Table, version: str) -> bytes:
    """The file.

    Args:
        trace: names the threads.
        phases: `thread_phases` as `analyze.stretches` makes them.
        version: of tprof.
    """
    phase, names = codes(phases, "phase")
    basis, bases = codes(phases, "basis")
    frames, frame = np.unique(phase * len(bases) + basis, return_inverse=True) if len(phase) else (phase, phase)
    start, end, thread = (ints(phases, column) for column in ("start_ns", "end_ns", "thread"))
    origin = int(start.min()) if len(start) else 0
    shown = [_label(names[f // len(bases)], bases[f % len(bases)]) for f in frames.tolist()]
    profiles = [
        _profile(_thread(trace, on), start[rows] - origin, end[rows] - origin, frame[rows])
        for on, rows in by_thread(thread)
    ]
    shared = {"frames": [{"name": label} for label in shown]}
    return msgspec.json.encode(
        {"$schema": _SCHEMA, "exporter": f"tprof {version}", "shared": shared, "profiles": profiles}
    )


def _label(phase: str, basis: str) -> str:
    return words.label(phase) + (f" ({basis})" if basis == "inferred" else "")


def _thread(trace: Trace, row: int) -> str:
    said = trace.threads.slice(row, 1).to_pylist()[0]
    return f"{said['name'] or 'thread'} {said['pid']}/{said['tid']}"


def _profile(name: str, start: np.ndarray, end: np.ndarray, frame: np.ndarray) -> dict[str, Any]:
    """Stretches of one thread; they follow one another without a hole, so weights say where each lies."""
    return {
        "type": "sampled",
        "name": name,
        "unit": "nanoseconds",
        "startValue": int(start[0]),
        "endValue": int(end[-1]),
        "samples": frame.reshape(-1, 1).tolist(),
        "weights": (end - start).tolist(),
    }
