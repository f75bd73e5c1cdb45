"""The incident on the stub driver: a service whose first requests compile and tune, and that a plan prepares.

As a program: `warm_demo.py RUN [PLAN]` records one run, and prints what it computed and what was cold after "ready".
"""

from __future__ import annotations

import contextlib
import json
import sys

import torch
import triton
import triton.language as tl
from support import record_kernels
from tprof_kernels.tuned import Tuned

import tprof
from tprof.buckets import BucketSet
from tprof.testing.stub import stub_driver

SIZES = (1000, 1024)
REQUESTS = SIZES * 3


@triton.jit
def scale(x, o, n, DTYPE: tl.constexpr, B: tl.constexpr, EVEN: tl.constexpr):
    """Doubles in the precision of DTYPE."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    if EVEN:
        tl.store(o + i, (tl.load(x + i).to(DTYPE) * 2).to(tl.float32))
    else:
        tl.store(o + i, (tl.load(x + i, mask=i < n).to(DTYPE) * 2).to(tl.float32), mask=i < n)


@triton.jit(do_not_specialize=["bucket"])
def shift(x, o, n, bucket, B: tl.constexpr):
    """Adds 1."""
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(o + i, tl.load(x + i, mask=i < n) + 1, mask=i < n)


def grid(n):
    return lambda meta: (triton.cdiv(n, meta["B"]),)


class Service:
    """A plain kernel, one with heuristics under an autotuner, and one of tprof_kernels' kind; needs a driver."""

    def __init__(self) -> None:
        configs = [triton.Config({"B": b}, num_warps=w, num_stages=2) for b, w in ((128, 4), (256, 2), (512, 4))]
        even = triton.heuristics({"EVEN": lambda args: args["n"] % args["B"] == 0})(scale)
        self.scale = triton.autotune(configs, key=["n"])(even)
        buckets = BucketSet.of("size", small={"n": "1..4096"})
        self.shift = Tuned(shift, configs[:2], triton.Config({"B": 64}, num_warps=4), buckets)
        for tuner in (self.scale, self.shift.autotuner):
            tuner.do_bench = record_kernels.bench

    def __call__(self, n: int) -> torch.Tensor:
        x, y, out = torch.arange(n, dtype=torch.float32), torch.zeros(n), torch.zeros(n)
        record_kernels.add[(triton.cdiv(n, 128),)](x, x, y, n, B=128)
        self.scale[grid(n)](y, out, n, tl.float16)
        self.shift.launch(grid(n), {"n": n}, out, y, n)
        return y


def forget() -> None:
    """Empty the memory of every kernel: the next service starts as a process does."""
    for kernel in (record_kernels.add, scale, shift):
        record_kernels.forget(kernel)


def serve(service: Service) -> list[float]:
    """One request after another."""
    sums = []
    for n in REQUESTS:
        with tprof.request(f"n={n}"):
            sums.append(float(service(n).sum()))
    return sums


def main(run: str, plan: str | None = None) -> None:
    with stub_driver(interpreted=True) as driver:
        service = Service()
        with tprof.trace(run) if run != "-" else contextlib.nullcontext():
            report = tprof.warmup(plan) if plan else None
            tprof.ready()
            sums = serve(service)
    told = {"sums": sums, "launches": len(driver.launches), "report": report and report.to_dict()}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
