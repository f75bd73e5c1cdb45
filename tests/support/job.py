"""Eight ranks of one job as torch.profiler would record them: the same steps, each of which ends in one collective.

Rank 5's device is slow, so the others wait for it; rank 3 is cold before the first collective; and every rank compiles
`attention`, as is inferred from a module that is loaded just before its first launch.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

RANKS, STEPS = 8, 20
SLOW, COLD = 5, 3
WARM = "warm read"  # a range; `--phase 'warm compile=compile'` makes rank 3's a cold one
_WORK, _MORE, _COLD, _COLLECTIVE = 500, 300, 9_000, 50  # us


def write(folder: Path, *, slow: int | None = SLOW, cold: int | None = COLD) -> list[Path]:
    """Write the traces, one a rank."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    work = [_WORK + (_MORE if rank == slow else 0) for rank in range(RANKS)]
    starts, now = [], 500
    for step in range(STEPS):
        begun = [now + (_COLD if rank == cold and step == 0 else 0) for rank in range(RANKS)]
        now = max(b + w for b, w in zip(begun, work, strict=True)) + _COLLECTIVE + 100
        starts.append((begun, now - 100))
    for rank in range(RANKS):
        path = folder / f"rank-{rank}.json"
        about = {"schemaVersion": 1, "baseTimeNanoseconds": 1_700_000_000_000_000_000,
                 "distributedInfo": {"rank": rank, "world_size": RANKS}}  # fmt: skip
        events = _events(rank, [(b[rank], e) for b, e in starts], work[rank], "warm compile" if rank == cold else WARM)
        path.write_text(json.dumps({**about, "traceEvents": events}))
        paths.append(path)
    return paths


def _events(rank: int, steps: list[tuple[int, int]], work: int, warm: str) -> list[dict[str, Any]]:
    found = []

    def add(cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> None:
        event = {"ph": "X", "cat": cat, "name": name, "pid": 0 if cat == "kernel" else 100 + rank, "tid": tid}
        found.append({**event, "ts": ts, "dur": dur, "args": args})

    add("cuda_driver", "cuModuleLoadData", 10, 300)
    add("user_annotation", warm, 400, steps[0][0] - 400)
    for step, (start, end) in enumerate(steps):
        on_device = {"stream": 7, "device": rank, "context": 1}
        add("cuda_driver", "cuLaunchKernelEx", start, 1, correlation=2 * step + 1)
        add("cuda_runtime", "cudaLaunchKernelExC", start + 2, 1, correlation=2 * step + 2)
        add("kernel", "attention", start + 10, work - 10, 7, correlation=2 * step + 1, **on_device)
        waits = start + work, end - start - work
        add("kernel", "ncclDevKernel_AllReduce_Sum", *waits, 7, correlation=2 * step + 2, **on_device)
        add("user_annotation", f"request {step}", start, end - start)
    return found
