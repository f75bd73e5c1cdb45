"""The demo whose spans must be the same on every Triton version."""

from __future__ import annotations

import torch
from support import record_kernels as kernels

from tprof.record import annotate, ready, request, trace
from tprof.testing.stub import stub_driver

SHARED = 4096  # bytes that the stub's blocks may have: less than the second config of `CONFIGS` needs
CONFIGS = ((128, 0, 4), (1024, 1, 4), (256, 2, 4), (256, 0, 2))


def demo(out, **options):
    """Cold, warm, a new specialization, a disk hit, a search with two failures, a request. Returns the stub driver."""
    x, o = torch.ones(1024), torch.empty(1024)
    with stub_driver(max_shared_mem=SHARED) as driver:
        tuner = kernels.tuned(*CONFIGS)
        with trace(out, **options):
            kernels.forget(kernels.add)
            kernels.add[(8,)](x, x, o, 1000, B=128)
            kernels.add[(8,)](x, x, o, 1000, B=128)
            kernels.add[(8,)](x, x, o, 1024, B=128)
            kernels.forget(kernels.add)
            kernels.add[(8,)](x, x, o, 1024, B=128)
            with request("generate", id="r1"), annotate("prefill"):
                for _ in range(3):
                    tuner[lambda meta: (1024 // meta["B"],)](x, o, 1024)
            ready()
            kernels.add[(8,)](x, x, o, 1024, B=128)
    return driver
