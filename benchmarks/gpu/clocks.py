"""Recorded phases against the process's own clock, and the recorder's clock against a profiler's over minutes.

    python benchmarks/gpu/clocks.py phases RUN
    tprof record --nsys -o RUN -- python benchmarks/gpu/clocks.py drift [--minutes 9]
    python benchmarks/gpu/clocks.py beacons RUN

`phases` times compiles, loads and candidates itself, within the recorder's own wraps. `drift` does light work for some
minutes, with a clock pair a second to everyone who listens; `beacons` says how far each profiler's clock strayed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

import numpy as np
import torch
from triton.compiler.compiler import CompiledKernel
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "examples")]
import serve  # noqa: E402 - the line above finds it

import tprof  # noqa: E402
from tprof.align.join import beacon_lateness  # noqa: E402
from tprof.read import read_source  # noqa: E402

TIMED = (
    (JITFunction, "_do_compile", "jit"),
    (CompiledKernel, "_init_handles", "load"),
    (Autotuner, "_bench", "candidate"),
)
own_ns: Counter[str] = Counter()
calls: Counter[str] = Counter()


def main() -> None:
    """Run one of the three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("phases", "drift", "beacons"))
    parser.add_argument("run", type=Path, nargs="?")
    parser.add_argument("--minutes", type=float, default=9.0)
    args = parser.parse_args()
    {"phases": phases, "beacons": beacons, "drift": lambda _: drift(args.minutes)}[args.what](args.run)


def phases(run: Path) -> None:
    """Serve three lengths under the recorder, with timers of our own within its wraps; print both sums."""
    for owner, name, kind in TIMED:
        setattr(owner, name, timer(getattr(owner, name), kind))
    with tprof.trace(run, torch_profiler="gpu"):
        service = serve.Service()
        service.block = torch.nn.Identity()  # Inductor compiles in a way of its own
        for length in (512, 777, 512):
            service(torch.randn(length, serve.WIDTH, device="cuda", dtype=torch.bfloat16))
    recorded = recorded_ns(run)
    for kind, ns in own_ns.items():
        print(f"{kind:10} {calls[kind]:4} calls  own {ns / 1e6:10.3f} ms  recorded {recorded[kind] / 1e6:10.3f} ms  "
              f"{recorded[kind] / ns - 1:+.3%}")  # fmt: skip


def timer(original: Callable[..., Any], kind: str) -> Callable[..., Any]:
    """The method, timed; a load that has nothing left to do takes no time and is not counted."""

    def timed(*args: Any, **kwargs: Any) -> Any:
        if kind == "load" and args[0].module is not None:
            return original(*args, **kwargs)
        begin = time.perf_counter_ns()
        try:
            return original(*args, **kwargs)
        finally:
            own_ns[kind] += time.perf_counter_ns() - begin
            calls[kind] += 1

    return timed


def recorded_ns(run: Path) -> Counter[str]:
    """Sum of the spans of this process's journal by kind."""
    found: Counter[str] = Counter()
    journal = run / f"process-{os.getpid()}.jsonl"
    begun: dict[int, dict[str, Any]] = {}
    for line in journal.read_text().splitlines():
        record = json.loads(line)
        if record["type"] == "begin":
            begun[record["id"]] = record
        elif record["type"] == "end":
            begin = begun[record["id"]]
            found[begin["kind"]] += record["t_ns"] - record.get("began_ns", begin["t_ns"])
    return found


def drift(minutes: float) -> None:
    """Light work for some minutes."""
    x = torch.ones(1024, device="cuda")
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end:
        x.mul_(1.0)
        torch.cuda.synchronize()
        time.sleep(0.25)


def beacons(run: Path) -> None:
    """Per profiler: beacons, error bound, and the tightest beacon of each tenth of the run against the tightest."""
    for trace in read_source(run):
        late = beacon_lateness(trace)
        if len(late):
            least = [int(part.min() - late.min()) for part in np.array_split(late, min(10, len(late)))]
            bound = int(np.median(late) - late.min())
            print(f"{trace.sources['path'][0]}: {len(late)} beacons, error bound {bound / 1e3:.1f} us; "
                  f"tightest of each tenth of the run, us: {[round(ns / 1e3, 1) for ns in least]}")  # fmt: skip


if __name__ == "__main__":
    main()
