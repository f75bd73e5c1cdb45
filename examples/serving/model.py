"""A small transformer of tprof_kernels: attention and an MLP per layer, for one sequence of any length."""

from __future__ import annotations

import torch
from tprof_kernels.attention import attention
from tprof_kernels.matmul import matmul

WIDTH, HEADS, LAYERS = 1024, 8, 2


class Model:
    """Weights in bfloat16, drawn at random: what is computed means nothing, and how long it takes everything.

    Args:
        device: where they are.
    """

    def __init__(self, device: str) -> None:
        draw = torch.Generator(device).manual_seed(0)
        shapes = {
            "qkv": (WIDTH, 3 * WIDTH),
            "out": (WIDTH, WIDTH),
            "up": (WIDTH, 4 * WIDTH),
            "down": (4 * WIDTH, WIDTH),
        }
        self.device = device
        self.layers = [
            {
                name: torch.randn(shape, generator=draw, device=device, dtype=torch.bfloat16) / shape[0] ** 0.5
                for name, shape in shapes.items()
            }
            for _ in range(LAYERS)
        ]

    @torch.no_grad()
    def __call__(self, length: int) -> torch.Tensor:
        """The prefill of a prompt of `length` tokens; gives the last token's state, (WIDTH,), once it is there."""
        x = torch.zeros(length, WIDTH, device=self.device, dtype=torch.bfloat16)
        for layer in self.layers:
            x = self._layer(x, layer)
        if x.is_cuda:
            torch.cuda.synchronize()
        return x[-1]

    @staticmethod
    def _layer(x: torch.Tensor, weights: dict[str, torch.Tensor]) -> torch.Tensor:
        """Of (length, WIDTH); matrix products add the residual stream and apply the activation themselves."""
        length = x.shape[0]
        qkv = matmul(torch.nn.functional.rms_norm(x, (WIDTH,)), weights["qkv"])
        q, k, v = qkv.view(1, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = attention(q, k, v, causal=True).transpose(1, 2).reshape(length, WIDTH)
        x = matmul(mixed, weights["out"], residual=x)
        hidden = matmul(torch.nn.functional.rms_norm(x, (WIDTH,)), weights["up"], activation="gelu_tanh")
        return matmul(hidden, weights["down"], residual=x)
