"""Several ranks, one of them cold: it compiles before a collective, and the others wait for it.

    tprof record -o RUN -- python -m torch.distributed.run --nproc-per-node 2 examples/ranks.py CACHES [--steps 4]

CACHES/rank<n> is the Triton cache of each rank: an empty one makes that rank cold. Needs NCCL and a GPU per rank.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.distributed as dist

import tprof

WIDTH = 1024


def main() -> None:
    """One rank: compute, then reduce over all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("caches", type=Path)
    parser.add_argument("--steps", type=int, default=4)
    args = parser.parse_args()
    rank = int(os.environ["LOCAL_RANK"])
    os.environ |= {"TRITON_CACHE_DIR": str(args.caches / f"rank{rank}"), "TPROF_KERNELS_TUNE": "0"}
    from tprof_kernels.matmul import matmul  # noqa: PLC0415 - the cache is chosen before Triton is imported
    from tprof_kernels.norm import layer_norm  # noqa: PLC0415 - as above

    torch.cuda.set_device(rank)
    dist.init_process_group("nccl")
    weight = torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16)
    scale, shift = torch.ones_like(weight[0]), torch.zeros_like(weight[0])
    dist.all_reduce(torch.zeros(1, device="cuda"))
    tprof.ready()
    for step in range(args.steps):
        with tprof.request(f"step {step}"):
            y = layer_norm(matmul(torch.randn_like(weight), weight), scale, shift)
            dist.all_reduce(y)
            torch.cuda.synchronize()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
