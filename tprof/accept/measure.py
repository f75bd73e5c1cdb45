"""Times of single calls on a GPU, and what the GPU can do at best, measured in the same run.

Medians of CUDA-event times with the L2 cache flushed before each call, and their 10th and 90th percentile. The flush
takes the device longer than the call takes the host: events would else time the host. A ceiling is a plain kernel that
moves as many bytes in the same ratio of reads to writes, and cuBLAS on bfloat16 matrices.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.kernelspec import Cost, KernelSpec

FLUSH: Final = 512 << 20  # bytes: ten times an L2 cache
FLUSH_US: Final = 100  # less than the fastest device takes for it
SECONDS: Final = 0.1  # of calls per measurement
PEAK: Final = 8192  # rows and columns of the matrices that measure the compute ceiling


def contenders(spec: KernelSpec) -> dict[str, Callable[..., Any]]:
    """What is measured, by column."""
    torch.compiler.reset()
    found = {"ours": spec.function, "eager": spec.fallback, "compile": compiled(spec)}
    return found | ({"library": spec.library} if spec.library and spec.library is not spec.fallback else {})


def compiled(spec: KernelSpec) -> Callable[..., Any]:
    """torch.compile of what torch eager runs; it fails where it would break the graph."""
    return torch.compile(spec.fallback, dynamic=False, fullgraph=True)


def measure(call: Callable[[], Any], seconds: float = SECONDS) -> dict[str, float]:
    """Median and percentiles of the device's time for a call, and the host's median time to issue one; in us."""
    for _ in range(3):
        call()
    host = _host(call)
    flush, times_over = torch.empty(FLUSH, dtype=torch.int8, device="cuda"), 1 + int(host / FLUSH_US)
    once = _events(call, flush, times_over, 3)[1]
    calls = max(20, min(500, int(seconds * 1e6 / (once + 300 * times_over))))
    times = sorted(_events(call, flush, times_over, calls))
    ranks = {"p10_us": 0.1, "median_us": 0.5, "p90_us": 0.9}
    found = {name: times[int(rank * (len(times) - 1))] for name, rank in ranks.items()}
    return found | {"host_us": host, "calls": len(times)}


def _host(call: Callable[[], Any]) -> float:
    """Median time in us that the host takes to issue a call."""
    times = []
    for _ in range(20):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        call()
        times.append((time.perf_counter_ns() - start) / 1e3)
    return sorted(times)[10]


def _events(call: Callable[[], Any], flush: torch.Tensor, times_over: int, count: int) -> list[float]:
    """Times of single calls in us, each after flushes of the L2 cache."""
    event: Callable[..., Any] = torch.cuda.Event
    pairs = [(event(enable_timing=True), event(enable_timing=True)) for _ in range(count)]
    for start, end in pairs:
        for _ in range(times_over):
            flush.zero_()
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return [start.elapsed_time(end) * 1e3 for start, end in pairs]


class Ceilings:
    """The device's own limits, each measured when first asked for."""

    def __init__(self) -> None:
        self._moves: dict[tuple[int, int], float] = {}
        a, b = (torch.randn(PEAK, PEAK, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        self.tflops = 2 * PEAK**3 / measure(lambda: a @ b)["median_us"] / 1e6

    def of(self, cost: Cost) -> dict[str, Any]:
        """The least time of a call: that of a plain kernel for its bytes, or of cuBLAS for its operations."""
        reads = min(4, round(cost.bytes_read / max(1, cost.bytes_written)))
        size = max(1 << 16, cost.bytes_read + cost.bytes_written)
        if (reads, size) not in self._moves:
            self._moves[reads, size] = measure(_mover(reads, size))["median_us"]
        memory, compute = self._moves[reads, size], cost.operations / self.tflops / 1e6
        asked = {"bytes": size, "operations": cost.operations}
        return {**asked, "least_us": max(memory, compute), "bound": "memory" if memory >= compute else "compute"}


def _mover(reads: int, size: int) -> Callable[[], Any]:
    """A plain kernel that moves `size` bytes, so many read for each that is written; 4 stands for reads only."""
    parts = {0: 1, 1: 2, 2: 3, 3: 4, 4: 1}[reads]
    a = torch.ones(size // parts // 4, device="cuda")
    b, c, d = (torch.ones_like(a) if parts > n else a for n in (1, 2, 3))
    calls: dict[int, Callable[[], Any]] = {
        0: lambda: a.fill_(1.0),
        1: lambda: b.copy_(a),
        2: lambda: torch.add(a, b, out=c),
        3: lambda: torch.addcmul(a, b, c, out=d),
        4: a.sum,
    }
    return calls[reads]
