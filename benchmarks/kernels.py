"""Each kernel of tprof_kernels against torch eager, torch.compile and the library's call, on the GPU at hand.

    python benchmarks/kernels.py --shard 1/4 --out kernels-1.jsonl     # again: goes on where it stopped
    python benchmarks/kernels.py --table kernels-*.jsonl               # Markdown of what was measured

Medians of CUDA-event times with the L2 cache flushed before each call, and their 10th and 90th percentile. The ceiling
is measured in the same run: a plain kernel that moves as many bytes in the same ratio of reads to writes, and cuBLAS
on bfloat16 matrices of 8192 x 8192. The host's time per call is measured apart: the flush hides it from the events.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]

import torch  # noqa: E402 - the line above comes first for what follows
import torch._functorch.config  # noqa: E402
from tprof_kernels import KERNELS  # noqa: E402
from tprof_kernels.tuned import Tuned  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tprof.kernelspec import KernelSpec

torch._functorch.config.donated_buffer = False  # noqa: SLF001 - else a compiled graph's backward runs only once

FLUSH = 512 << 20  # bytes: ten times an L2 cache, and long enough to hide the host's time for a call
SECONDS = 0.3  # of calls per measurement
PEAK = 8192  # rows and columns of the matrices that measure the compute ceiling
WORKERS = 6  # processes that compile ahead; each has a CUDA context and inputs of its own
Item = dict[str, Any]


def main() -> None:
    """Measure a shard, or print the table of what was measured."""
    options = _options()
    if options.table:
        print(table([json.loads(line) for path in options.table for line in path.read_text().splitlines()]))
        return
    shard, shards = map(int, options.shard.split("/"))
    items = list(work(options.kernels, options.dtypes, backward=not options.forward))[shard - 1 :: shards]
    done = {_key(json.loads(line)) for line in options.out.read_text().splitlines()} if options.out.exists() else set()
    items = [item for item in items if _key(item) not in done]
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: {len(items)} to measure, {len(done)} done")
    start = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(min(WORKERS, os.cpu_count() or 1), maxtasksperchild=8) as pool:
        pool.map(compile_ahead, items, chunksize=1)
    print(f"compiled in {time.perf_counter() - start:.0f} s")
    ceilings = Ceilings()
    with options.out.open("a") as file:
        for item in items:
            row = measure_item(item, ceilings)
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(f"{time.perf_counter() - start:4.0f} s  {_line(row)}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shard", default="1/1", help="i/n: every n-th measurement from the i-th")
    parser.add_argument("--out", type=Path, default=Path("kernels.jsonl"), help="a line of JSON per measurement")
    parser.add_argument("--kernels", default="*", help="glob of kernel names")
    parser.add_argument("--dtypes", default="bfloat16", help="comma-separated; a kernel without them takes its first")
    parser.add_argument("--forward", action="store_true", help="leave out the backward passes")
    parser.add_argument("--table", type=Path, nargs="+", help="print these results and measure nothing")
    return parser.parse_args()


def work(kernels: str, dtypes: str, *, backward: bool) -> Iterator[Item]:
    """What there is to measure: each representative shape, forward, and backward where there is one."""
    for spec in KERNELS.values():
        names = [name for name in dtypes.split(",") if name in spec.dtypes] or [spec.dtypes[0]]
        for bucket, shapes in spec.shapes.items() if fnmatch.fnmatch(spec.name, kernels) else ():
            for sizes in shapes:
                for dtype in names:
                    for way in ("forward", "backward") if backward and spec.gradients else ("forward",):
                        yield {"kernel": spec.name, "bucket": bucket, "sizes": sizes, "dtype": dtype, "way": way}


def contenders(spec: KernelSpec) -> dict[str, Callable[..., Any]]:
    """What is measured, by column."""
    torch.compiler.reset()
    found = {"ours": spec.function, "eager": spec.fallback, "compile": torch.compile(spec.fallback, dynamic=False)}
    return found | ({"library": spec.library} if spec.library and spec.library is not spec.fallback else {})


def call_of(spec: KernelSpec, item: Item, function: Callable[..., Any]) -> Callable[[], Any]:
    """One call to time: the function, or the backward of a call made here."""
    inputs = spec.inputs(item["sizes"], item["dtype"], "cuda", 0)
    if item["way"] == "forward":
        return lambda: function(*inputs.args, **inputs.kwargs)
    tensors = [arg for arg in inputs.args if isinstance(arg, torch.Tensor) and arg.is_floating_point()]
    leaves = [tensor.requires_grad_() for tensor in tensors]
    outputs = function(*inputs.args, **inputs.kwargs)
    outputs = [o for o in (outputs if isinstance(outputs, tuple) else (outputs,)) if o.requires_grad]
    grads = [torch.randn_like(output) for output in outputs]
    return lambda: torch.autograd.grad(outputs, leaves, grads, retain_graph=True, allow_unused=True)


def compile_ahead(item: Item) -> None:
    """In a process of its own: fill the disk caches of Triton and torch.compile; failures show again when measured."""
    spec = KERNELS[item["kernel"]]
    for name, function in contenders(spec).items():
        if name in {"ours", "compile"}:
            try:
                call_of(spec, item, function)()
                torch.cuda.synchronize()
            except Exception as error:  # noqa: BLE001 - a contender may fail in any way, and the rest must go on
                print(f"{item}: {name}: {type(error).__name__}: {error}", file=sys.stderr)
            torch.cuda.empty_cache()  # the other processes need room too


def measure_item(item: Item, ceilings: Ceilings) -> Item:
    """The item with a result per contender, and the ceiling."""
    spec = KERNELS[item["kernel"]]
    results: dict[str, Any] = {}
    for name, function in contenders(spec).items():
        try:
            results[name] = measure(call_of(spec, item, function))
        except Exception as error:  # noqa: BLE001 - as above; the failure is the result
            results[name] = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        torch.cuda.empty_cache()
    row = {**item, "device": torch.cuda.get_device_name(), "torch": torch.__version__, "results": results}
    tuned = [kernel for kernel in spec.triton_functions if isinstance(kernel, Tuned) and kernel.autotuner.cache]
    row["winners"] = {kernel.name: str(getattr(kernel.autotuner, "best_config", "")) for kernel in tuned}
    if item["way"] == "forward" and "error" not in results["ours"]:
        row["ceiling"] = ceilings.of(spec.cost(item["sizes"], item["dtype"]))
    return row


def measure(call: Callable[[], Any], seconds: float = SECONDS) -> dict[str, float]:
    """Median and percentiles of the device's time for a call, and the host's median time to issue one; in us."""
    for _ in range(3):
        call()
    flush = torch.empty(FLUSH, dtype=torch.int8, device="cuda")
    once = _events(call, flush, 3)[1]
    times = sorted(_events(call, flush, max(20, min(500, int(seconds * 1e6 / (once + 300))))))
    host = []
    for _ in range(20):
        torch.cuda.synchronize()
        start = time.perf_counter_ns()
        call()
        host.append((time.perf_counter_ns() - start) / 1e3)
    ranks = {"p10_us": 0.1, "median_us": 0.5, "p90_us": 0.9}
    return {name: times[int(rank * (len(times) - 1))] for name, rank in ranks.items()} | {
        "host_us": sorted(host)[10],
        "calls": len(times),
    }


def _events(call: Callable[[], Any], flush: torch.Tensor, count: int) -> list[float]:
    """Times of single calls in us, each after a flush of the L2 cache."""
    pairs = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(count)]
    for start, end in pairs:
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

    def of(self, cost: Any) -> dict[str, Any]:
        """The least time of a call: that of a plain kernel for its bytes, or of cuBLAS for its operations."""
        reads = min(4, round(cost.bytes_read / max(1, cost.bytes_written)))
        size = max(1 << 16, cost.bytes_read + cost.bytes_written)
        if (reads, size) not in self._moves:
            self._moves[reads, size] = measure(_mover(reads, size))["median_us"]
        memory, compute = self._moves[reads, size], cost.operations / self.tflops / 1e6
        rate = {"bytes": size, "operations": cost.operations, "tflops": self.tflops, "reads_per_write": reads}
        return {**rate, "least_us": max(memory, compute), "bound": "memory" if memory >= compute else "compute"}


def _mover(reads: int, size: int) -> Callable[[], Any]:
    """A plain kernel that moves `size` bytes, so many read for each that is written; 4 stands for reads only."""
    parts = {0: 1, 1: 2, 2: 3, 3: 4, 4: 1}[reads]
    a = torch.ones(size // parts // 4, device="cuda")
    b, c, d = (torch.ones_like(a) if parts > n else a for n in (1, 2, 3))
    calls = {
        0: lambda: a.fill_(1.0),
        1: lambda: b.copy_(a),
        2: lambda: torch.add(a, b, out=c),
        3: lambda: torch.addcmul(a, b, c, out=d),
        4: a.sum,
    }
    return calls[reads]


def _key(item: Item) -> str:
    return json.dumps([item[name] for name in ("kernel", "bucket", "sizes", "dtype", "way")], sort_keys=True)


def _time(row: Item, name: str) -> str:
    result = row["results"].get(name)
    if result is None:
        return "-"
    return "failed" if "error" in result else f"{result['median_us']:.1f}"


def _cells(row: Item) -> list[str]:
    sizes = " ".join(f"{name}={value}" for name, value in row["sizes"].items())
    ours, ceiling = row["results"]["ours"], row.get("ceiling")
    spread = "" if "error" in ours else f"{ours['p10_us']:.1f}-{ours['p90_us']:.1f}"
    rate = share = "-"
    if ceiling:
        us = ours["median_us"]
        bound = ceiling["bound"] == "memory"
        rate = f"{ceiling['bytes'] / us / 1e3:.0f} GB/s" if bound else f"{ceiling['operations'] / us / 1e6:.0f} TFLOP/s"
        share = f"{ceiling['least_us'] / us:.0%}"
    times = [_time(row, name) for name in ("ours", "eager", "compile", "library")]
    return [row["kernel"], sizes, row["dtype"], row["way"], times[0], spread, *times[1:], rate, share]


def _line(row: Item) -> str:
    return "  ".join(_cells(row))


def table(rows: list[Item]) -> str:
    """Markdown, a row per measurement."""
    head = [
        "kernel",
        "sizes",
        "dtype",
        "way",
        "ours, us",
        "p10-p90",
        "eager",
        "compile",
        "library",
        "rate",
        "of ceiling",
    ]
    lines = [head, ["---"] * 4 + ["---:"] * 7, *map(_cells, rows)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


if __name__ == "__main__":
    main()
