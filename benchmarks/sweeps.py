"""How the sweeps grow with the number of events, to 10 million; prints a table in Markdown.

    python benchmarks/sweeps.py [--largest 10_000_000]

Growth compares the two largest sizes: seconds of the processor per event and per log2 of the events, so that 1.0 is
n log n. The goals: 1 million ranges on 5 million kernels under 1 s, and idle attribution with 5 million gaps under 3 s.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.links import find_launches
from tprof.analyze import Attribution, Options
from tprof.analyze.kernels import kernel_rows
from tprof.intervals import gaps, innermost, union
from tprof.machine import can_compile
from tprof.model import Trace, labels, table

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (100_000, 1_000_000, 5_000_000, 10_000_000)
Case = tuple[str, "Callable[[], object]"]


def kernels(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Begin and end of kernels on one stream, with a gap before each."""
    draw = np.random.default_rng(0)
    length, pause = draw.integers(1_000, 50_000, count), draw.integers(1, 5_000, count)
    end = np.cumsum(length + pause)
    return end - length, end


def trace(count: int) -> Trace:
    """A thread that launches so many kernels, each from an operator; a range holds five of them."""
    start, end = kernels(count)
    called = start - 900
    host_start = np.concatenate([called - 50, called, called[::5] - 80])
    host_end = np.concatenate([called + 600, called + 500, np.append(called[5::5] - 90, end[-1])])
    kind = np.repeat(np.arange(3), [count, count, len(called[::5])])
    order = np.lexsort((-host_end, host_start))
    correlation = np.where(kind == 1, np.concatenate([np.arange(count)] * 2 + [called[::5]]) + 1, -1)
    zero = np.zeros(len(order), np.int64)
    host = table("host", {
        "start_ns": host_start[order], "end_ns": host_end[order], "thread": zero, "pid": zero + 1, "tid": zero + 1,
        "kind": labels(kind[order], ["op", "runtime", "range"]),
        "name": labels(kind[order], ["aten::mm", "cudaLaunchKernel", "layer"]), "correlation": correlation[order],
    })  # fmt: skip
    none = np.zeros(count, np.int64)
    device = table("device", {
        "start_ns": start, "end_ns": end, "device": none, "pid": none + 1, "stream": none + 7,
        "kind": labels(none, ["kernel"]), "name": labels(np.arange(count) % 200, [f"kernel_{n}" for n in range(200)]),
        "correlation": np.arange(count) + 1, "launch": np.flatnonzero(kind[order] == 1),
    })  # fmt: skip
    one = {"host": ["h"], "pid": [1]}
    return Trace(
        host=host, device=device, processes=table("processes", one), threads=table("threads", {**one, "tid": [1]}),
        devices=table("devices", {**one, "ordinal": [0], "source": [0]}),
        sources=table("sources", {"path": ["x"], "format": ["nsight"], "rows_read": [1], "rows_dropped": [0]}),
    )  # fmt: skip


def cases(count: int) -> list[Case]:
    """What is measured on so many kernels."""
    start, end = kernels(count)
    mixed = np.random.default_rng(1).permutation(count)
    made = trace(count)
    ranges = start[::5] - 80, np.append(start[5::5] - 90, end[-1])
    attribution = Attribution(made)
    return [
        ("union", lambda: union(start[mixed], end[mixed])),
        ("gaps", lambda: gaps(start, end)),
        ("launches", lambda: find_launches(made)),
        (f"projection of {len(ranges[0]):,} ranges", lambda: innermost(*ranges).at(start)),
        ("idle attribution", lambda: Attribution(made).pieces(0)),
        ("percentiles by kernel", lambda: kernel_rows(attribution, Options())),
    ]


def measured(call: Callable[[], object]) -> float:
    """Least processor seconds of three runs."""
    found = []
    for _ in range(3):
        begin = time.process_time()
        call()
        found.append(time.process_time() - begin)
    return min(found)


def main() -> None:
    """Measure every size and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    if can_compile():
        os.environ.setdefault("TPROF_SCANNER", "on")  # compiled within the first of three runs
    sizes = [n for n in SIZES if n <= parser.parse_args().largest]
    seconds: dict[str, list[float]] = {}
    for size in sizes:
        for name, call in cases(size):
            seconds.setdefault(name.split(" of ")[0], []).append(measured(call))
    print("\n## Sweeps\n\nGoals: projection of 1 million ranges on 5 million kernels in 1 s, 5 million gaps in 3 s.\n")
    print(f"| processor seconds of | {' | '.join(f'{n:,}' for n in sizes)} kernels | growth over n log n |")
    print(f"|---{'|---' * (len(sizes) + 1)}|")
    for name, found in seconds.items():
        (a, b), (n, m) = found[-2:], sizes[-2:]
        growth = b / a / (m * math.log2(m) / (n * math.log2(n)))
        print(f"| {name} | {' | '.join(f'{s:.3f}' for s in found)} | {growth:.2f} |")


if __name__ == "__main__":
    main()
