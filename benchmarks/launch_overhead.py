"""What tprof adds to a warm Triton launch, on the stub driver: a recording, or without one a guard or metrics.

    python benchmarks/launch_overhead.py [--blocks 100] [--launches 200] [--between BYTES]

CPU time of the launching thread; differences of minima over interleaved blocks, since a machine is noisy upwards only.
With `--between`, so many bytes are overwritten before each launch, as a driver and a model at work leave the caches.
To see the cost with an NVTX tool attached, set NVTX_INJECTION64_PATH to one (tests/support/nvtxlog.c). Needs torch,
triton, nvtx and prometheus-client.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

import prometheus_client
import torch
import triton

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
from support import record_kernels as kernels  # noqa: E402 - the line above finds it

from tprof.metrics import Prometheus  # noqa: E402
from tprof.prepare.guard import guard  # noqa: E402
from tprof.record import trace  # noqa: E402
from tprof.testing.stub import stub_driver  # noqa: E402

GOAL_NS = 2000
between = bytearray()  # overwritten before each launch


def main() -> None:
    """Print one line per kind of launch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=100)
    parser.add_argument("--launches", type=int, default=200)
    parser.add_argument("--between", type=int, default=0)
    options = parser.parse_args()
    between.extend(bytes(options.between))
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    with tempfile.TemporaryDirectory() as scratch:
        os.environ["TRITON_CACHE_DIR"] = str(Path(scratch) / "cache")
        measure_all(Path(scratch), options.blocks, options.launches)


def measure_all(scratch: Path, blocks: int, launches: int) -> None:
    """Measure plain and autotuned launches: recorded with shapes read once and always, watched, and sampled."""
    tool = "an NVTX tool" if os.environ.get("NVTX_INJECTION64_PATH") else "no NVTX tool"
    print(f"triton {triton.__version__}, {tool}: ns per warm launch")
    for name, make in (("plain", plain), ("autotuned", autotuned)):
        ways: dict[str, Callable[[], contextlib.AbstractContextManager[object]]] = {
            "shapes=first": lambda: trace(scratch / "first", shapes="first"),
            "shapes=always": lambda: trace(scratch / "always", shapes="always"),
            "guard": lambda: guard("count"),
            "metrics": lambda: metrics(0),
            "metrics, 1 in 100 timed": lambda: metrics(100),
        }
        for way, begin in ways.items():
            off, on = interleaved(make, begin, blocks, launches)
            verdict = "within" if on - off <= GOAL_NS else "over"
            print(f"  {name:9} {way:23}  off {off:5.0f}  on {on:5.0f}  adds {on - off:5.0f}  ({verdict} 2 us)")


@contextlib.contextmanager
def metrics(sample_every: int) -> Iterator[None]:
    """Prometheus metrics, scraped at the end."""
    registry = prometheus_client.CollectorRegistry()
    ours = Prometheus(registry, sample_every=sample_every)
    yield
    prometheus_client.generate_latest(registry)
    ours.close()


def plain() -> Callable[[], None]:
    """A launch of a @triton.jit function."""
    x, o = torch.ones(1024), torch.empty(1024)
    launch = kernels.add[(8,)]
    return lambda: launch(x, x, o, 1024, B=128)


def autotuned() -> Callable[[], None]:
    """A launch through `triton.autotune`."""
    x, o = torch.ones(1024), torch.empty(1024)
    launch = kernels.tuned((128, 0, 4), (256, 0, 4))[lambda meta: (1024 // meta["B"],)]
    return lambda: launch(x, o, 1024)


def interleaved(
    make: Callable[[], Callable[[], None]],
    begin: Callable[[], contextlib.AbstractContextManager[object]],
    blocks: int,
    launches: int,
) -> tuple[float, float]:
    """Least ns per launch without and with `begin()`, which is entered anew for each block."""
    off, on = [], []
    with stub_driver() as driver:
        driver.keep_launches = False
        call = make()
        call()
        for _ in range(blocks):
            off.append(timed(call, launches))
            with begin():
                call()
                on.append(timed(call, launches))
    return min(off), min(on)


def timed(call: Callable[[], None], launches: int) -> float:
    """Ns per call."""
    if not between:
        begin = time.thread_time_ns()
        for _ in range(launches):
            call()
        return (time.thread_time_ns() - begin) / launches
    took, zeros = 0, bytes(len(between))
    for _ in range(launches):
        between[:] = zeros
        begin = time.thread_time_ns()
        call()
        took += time.thread_time_ns() - begin
    return took / launches


if __name__ == "__main__":
    main()
