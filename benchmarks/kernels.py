"""Each kernel of tprof_kernels against torch eager, torch.compile and the library's call, on the GPU at hand.

    python -W ignore benchmarks/kernels.py --forward --out kernels.jsonl    # again: goes on where it stopped
    python -W ignore benchmarks/kernels.py --all --shard 1/4 --out kernels-1.jsonl
    python benchmarks/kernels.py --table kernels*.jsonl                     # Markdown of what was measured

Medians of CUDA-event times with the L2 cache flushed before each call, and their 10th and 90th percentile. The ceiling
is measured in the same run: a plain kernel that moves as many bytes in the same ratio of reads to writes, and cuBLAS
on bfloat16 matrices of 8192 x 8192. The host's time per call is measured apart: the flush hides it from the events.
torch.compile gets what torch eager runs, and only as a whole graph: `failed` where it would break it.
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import itertools
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "kernels")]
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")  # our own processes compile ahead

import torch  # noqa: E402 - the line above comes first for what follows
import torch._functorch.config  # noqa: E402
import torch._inductor.config  # noqa: E402
from tprof_kernels import KERNELS  # noqa: E402
from tprof_kernels.tuned import Tuned  # noqa: E402

from tprof.accept.measure import Ceilings, compiled, contenders, measure  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tprof.kernelspec import KernelSpec

torch._functorch.config.donated_buffer = False  # noqa: SLF001 - else a compiled graph's backward runs only once
torch._inductor.config.autotune_local_cache = False  # noqa: SLF001 - what was timed beside others' work decides nothing

WORKERS = 14  # processes that compile ahead; each has its share of the GPU's memory
WEIGHT = 200  # operations that a GPU can do in the time of moving a byte: to tell which of two calls is larger
Item = dict[str, Any]


def main() -> None:
    """Measure a shard, or print the table of what was measured."""
    options = _options()
    if options.table:
        print(table([json.loads(line) for path in options.table for line in path.read_text().splitlines()]))
        return
    shard, shards = map(int, options.shard.split("/"))
    items = list(work(options))[shard - 1 :: shards]
    rows = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = set(map(_key, rows))
    items = [item for item in items if _key(item) not in done]
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}: {len(items)} to measure, {len(done)} done")
    start = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(min(WORKERS, len(items)) or 1, maxtasksperchild=8) as pool:
        pool.map(compile_ahead, items, chunksize=1)
    print(f"compiled in {time.perf_counter() - start:.0f} s")
    ceilings = Ceilings()
    with options.out.open("a") as file:
        for item in items:
            rows.append(measure_item(item, ceilings))
            file.write(json.dumps(rows[-1]) + "\n")
            file.flush()
            print(f"{time.perf_counter() - start:4.0f} s  {_line(rows[-1])}", flush=True)
    print(table(rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shard", default="1/1", help="i/n: every n-th measurement from the i-th")
    parser.add_argument("--out", type=Path, default=Path("kernels.jsonl"), help="a line of JSON per measurement")
    parser.add_argument("--kernels", default="*", help="glob of kernel names")
    parser.add_argument("--dtypes", default="bfloat16", help="comma-separated; a kernel without them takes its first")
    parser.add_argument("--forward", action="store_true", help="leave out the backward passes")
    parser.add_argument("--all", action="store_true", help="every representative shape; else a small and a large one")
    parser.add_argument("--table", type=Path, nargs="+", help="print these results and measure nothing")
    return parser.parse_args()


def work(options: argparse.Namespace) -> Iterator[Item]:
    """What there is to measure, forward, and backward where there is one."""
    for spec in KERNELS.values():
        if fnmatch.fnmatch(spec.name, options.kernels):
            names = [name for name in options.dtypes.split(",") if name in spec.dtypes] or [spec.dtypes[0]]
            ways = ["forward", "backward"] if spec.gradients and not options.forward else ["forward"]
            for (bucket, sizes), dtype, way in itertools.product(_shapes(spec, options), names, ways):
                yield {"kernel": spec.name, "bucket": bucket, "sizes": sizes, "dtype": dtype, "way": way}


def _shapes(spec: KernelSpec, options: argparse.Namespace) -> list[tuple[str, Mapping[str, Any]]]:
    """Representative shapes with their buckets: all, or the least and the most work among the first of each bucket."""
    if options.all:
        return [(bucket, sizes) for bucket, shapes in spec.shapes.items() for sizes in shapes]

    def effort(shape: tuple[str, Mapping[str, Any]]) -> int:
        cost = spec.cost(shape[1], spec.dtypes[0])
        return cost.operations + WEIGHT * (cost.bytes_read + cost.bytes_written)

    first = sorted(((bucket, shapes[0]) for bucket, shapes in spec.shapes.items() if bucket != "other"), key=effort)
    return [first[0], first[-1]]


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
    torch.cuda.set_per_process_memory_fraction(0.9 / WORKERS)
    spec = KERNELS[item["kernel"]]
    for function in (spec.function, compiled(spec)):
        with contextlib.suppress(Exception):
            call_of(spec, item, function)()
            torch.cuda.synchronize()


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


def _key(item: Item) -> str:
    return json.dumps([item[name] for name in ("kernel", "bucket", "sizes", "dtype", "way")], sort_keys=True)


def _time(row: Item, name: str) -> str:
    result = row["results"].get(name)
    if result is None:
        return "-"
    if "error" in result:
        return "no memory" if result["error"].startswith("OutOfMemoryError") else "failed"
    return f"{result['median_us']:.1f}"


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
