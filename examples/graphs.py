"""A decoder that captures a CUDA graph per batch size at start-up and replays the smallest that fits.

    tprof record -o RUN -- python examples/graphs.py

Needs an NVIDIA GPU, torch and triton. `tprof cold RUN` shows what each capture cost, before `ready`.
"""

from __future__ import annotations

import torch
from tprof_kernels.norm import rms_norm
from tprof_kernels.softmax import softmax

import tprof

WIDTH = 1024
SIZES = (1, 2, 4, 8)
REQUESTS = (1, 3, 8, 2, 1, 5, 8, 1)


class Decoder:
    """One step of x (batch, WIDTH) in bf16, captured for each batch size."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        with tprof.annotate("weights"):
            self.weight = torch.randn(WIDTH, WIDTH, device="cuda", dtype=torch.bfloat16)
            self.scale = torch.ones(WIDTH, device="cuda", dtype=torch.bfloat16)
        self.inputs = {size: torch.zeros(size, WIDTH, device="cuda", dtype=torch.bfloat16) for size in SIZES}
        self.graphs = {size: self.capture(size) for size in SIZES}

    def step(self, x: torch.Tensor) -> torch.Tensor:
        """What is captured."""
        return softmax(rms_norm(x, self.scale) @ self.weight)

    def capture(self, size: int) -> tuple[torch.cuda.CUDAGraph, torch.Tensor]:
        """Warm up, so that nothing is compiled within the capture, and capture."""
        self.step(self.inputs[size])
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with tprof.annotate(f"capture b={size}"), torch.cuda.graph(graph):
            out = self.step(self.inputs[size])
        return graph, out

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """Decode a step for x (batch, WIDTH) by the smallest graph that holds it."""
        size = next(size for size in SIZES if size >= len(x))
        graph, out = self.graphs[size]
        self.inputs[size][: len(x)].copy_(x)
        graph.replay()
        torch.cuda.synchronize()
        return out[: len(x)]


def main() -> None:
    """Start, then decode for batches of changing size."""
    decoder = Decoder()
    tprof.ready()
    for i, batch in enumerate(REQUESTS):
        x = torch.randn(batch, WIDTH, device="cuda", dtype=torch.bfloat16)
        torch.cuda.synchronize()
        with tprof.request(f"decode b={batch}", id=str(i)), torch.no_grad():
            decoder(x)


if __name__ == "__main__":
    main()
