"""A small service with a cold start: an autotuned Triton matmul, a Triton softmax, a `torch.compile`d layer.

    python examples/serve.py RUN [--torch-profiler off|cpu|gpu] [--lengths 512,512,2048,512,777,2048,777,512]

Needs an NVIDIA GPU, torch and triton. `tprof summary RUN` then says why the first request of each length was slow.
"""

from __future__ import annotations

import argparse

import torch
import triton
import triton.language as tl

import tprof

WIDTH = 1024
CONFIGS = [
    triton.Config({"BM": bm, "BN": bn, "BK": bk}, num_warps=warps, num_stages=stages)
    for bm, bn, bk, warps, stages in (
        (64, 64, 32, 4, 3), (128, 64, 32, 4, 4), (64, 128, 32, 4, 4),
        (128, 128, 32, 4, 4), (128, 128, 64, 8, 3), (128, 256, 64, 8, 3),
    )
]  # fmt: skip


@triton.autotune(configs=CONFIGS, key=["M", "N", "K"])
@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """One program owns one BM x BN tile of c and walks along K."""
    rows, columns = tl.program_id(0) * BM + tl.arange(0, BM), tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        depth = k + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + depth[None, :], mask=rows[:, None] < M, other=0.0)
        right = tl.load(b + depth[:, None] * N + columns[None, :])
        acc = tl.dot(left, right, acc)
    tl.store(c + rows[:, None] * N + columns[None, :], acc.to(tl.bfloat16), mask=rows[:, None] < M)


@triton.jit
def softmax(x, y, N: tl.constexpr):
    """One program owns one row, which fits in one block."""
    at = tl.program_id(0) * N + tl.arange(0, N)
    row = tl.load(x + at).to(tl.float32)
    row = tl.exp(row - tl.max(row, 0))
    tl.store(y + at, (row / tl.sum(row, 0)).to(tl.bfloat16))


class Service:
    """Serves requests of any length: x of shape (length, WIDTH) in bf16."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.weight = torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16)
        block = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU(), torch.nn.LayerNorm(WIDTH))
        self.block = torch.compile(block.to("cuda", torch.bfloat16), dynamic=False)

    @torch.no_grad()
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """One request: matmul, softmax, compiled block."""
        length = x.shape[0]
        product, rows = torch.empty_like(x), torch.empty_like(x)
        grid = lambda meta: (triton.cdiv(length, meta["BM"]), triton.cdiv(WIDTH, meta["BN"]))  # noqa: E731
        matmul[grid](x, self.weight, product, length, WIDTH, WIDTH)
        softmax[(length,)](product, rows, WIDTH)
        y = self.block(rows)
        torch.cuda.synchronize()
        return y


def main() -> None:
    """Serve a few requests under `tprof.trace`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--torch-profiler", choices=("off", "cpu", "gpu"), default="off")
    parser.add_argument("--lengths", default="512,512,2048,512,777,2048,777,512")
    args = parser.parse_args()
    with tprof.trace(args.run, torch_profiler=args.torch_profiler):
        service = Service()
        tprof.ready()
        for i, length in enumerate(map(int, args.lengths.split(","))):
            x = torch.randn(length, WIDTH, device="cuda", dtype=torch.bfloat16)
            torch.cuda.synchronize()
            with tprof.request(f"request L={length}", id=str(i)):
                service(x)


if __name__ == "__main__":
    main()
