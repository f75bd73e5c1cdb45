"""A small service with a cold start: an autotuned Triton matmul, attention, a `torch.compile`d layer.

    python examples/serve.py RUN [--torch-profiler off|cpu|gpu] [--lengths 512,512,2048,512,777,2048,777,512]
    tprof record -o RUN -- python examples/serve.py [--processes 2]

Needs an NVIDIA GPU, torch and triton. `tprof summary RUN` then says why the first request of each length was slow.
TRITON_BENCHMARK_MS shortens the timing of each candidate, which is 100 ms by default.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import os

import torch
import triton
import triton.language as tl
from tprof_kernels.attention import attention

import tprof

WIDTH, HEADS = 1024, 8
BENCHMARK_MS = int(os.environ.get("TRITON_BENCHMARK_MS", "100"))
CONFIGS = [
    triton.Config({"BM": bm, "BN": bn, "BK": bk}, num_warps=warps, num_stages=stages)
    for bm, bn, bk, warps, stages in (
        (64, 64, 32, 4, 3), (128, 64, 32, 4, 4), (64, 128, 32, 4, 4),
        (128, 128, 32, 4, 4), (128, 128, 64, 8, 3), (128, 256, 64, 8, 3),
    )
]  # fmt: skip


timed = functools.partial(triton.testing.do_bench, warmup=BENCHMARK_MS // 4, rep=BENCHMARK_MS)


# M in the key is the mistake that this example is about: every new length is tuned for again.
@triton.autotune(configs=CONFIGS, key=["M", "N", "K"], do_bench=timed)
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


class Service:
    """Serves requests of any length: x of shape (length, WIDTH) in bf16."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        with tprof.annotate("weights"):
            self.weight = torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16)
            block = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.GELU(), torch.nn.LayerNorm(WIDTH))
            self.block = torch.compile(block.to("cuda", torch.bfloat16), dynamic=False)

    @torch.no_grad()
    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """One request: matmul, attention over the product's heads, compiled block."""
        length = x.shape[0]
        product = torch.empty_like(x)
        grid = lambda meta: (triton.cdiv(length, meta["BM"]), triton.cdiv(WIDTH, meta["BN"]))  # noqa: E731
        matmul[grid](x, self.weight, product, length, WIDTH, WIDTH)
        heads = product.view(1, length, HEADS, WIDTH // HEADS).transpose(1, 2)
        mixed = attention(heads, heads, heads, causal=True)
        y = self.block(mixed.transpose(1, 2).reshape(length, WIDTH))
        torch.cuda.synchronize()
        return y


def serve(lengths: list[int]) -> None:
    """Start, say that start-up is over, and serve one request of each length."""
    service = Service()
    tprof.ready()
    for i, length in enumerate(lengths):
        x = torch.randn(length, WIDTH, device="cuda", dtype=torch.bfloat16)
        torch.cuda.synchronize()
        with tprof.request(f"request L={length}", id=str(i)):
            service(x)


def main() -> None:
    """Serve a few requests, under `tprof.trace` where a run directory is named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?")
    parser.add_argument("--torch-profiler", choices=("off", "cpu", "gpu"), default="off")
    parser.add_argument("--lengths", default="512,512,2048,512,777,2048,777,512")
    parser.add_argument("--processes", type=int, default=1)
    args = parser.parse_args()
    lengths = [int(length) for length in args.lengths.split(",")]
    recording = tprof.trace(args.run, torch_profiler=args.torch_profiler) if args.run else contextlib.nullcontext()
    with recording:
        if args.processes == 1:
            serve(lengths)
        else:
            torch.multiprocessing.spawn(serve_one, (lengths,), args.processes)


def serve_one(_: int, lengths: list[int]) -> None:
    """One of several server processes."""
    serve(lengths)


if __name__ == "__main__":
    main()
