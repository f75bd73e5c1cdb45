"""Random inputs of a `KernelSpec`: the same for the same seed on one device."""

from __future__ import annotations

import torch


class Draw:
    """Draws tensors of one dtype from one generator."""

    def __init__(self, dtype: str, device: str, seed: int) -> None:
        self.dtype: torch.dtype = getattr(torch, dtype)
        self.device = torch.device(device)
        self._generator = torch.Generator(self.device).manual_seed(seed)

    def normal(self, *shape: int, scale: float = 1.0, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Normal values of this standard deviation, rounded to the dtype."""
        drawn = torch.randn(shape, device=self.device, generator=self._generator)
        return drawn.mul_(scale).to(dtype or self.dtype)

    def integers(self, low: int, high: int, *shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
        """Uniform integers from low to high - 1."""
        return torch.randint(low, high, shape, device=self.device, generator=self._generator, dtype=dtype)
