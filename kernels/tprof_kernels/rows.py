"""A tensor as rows: what the kernels that work along one dimension take."""

from __future__ import annotations

import math

import torch


def as_rows(x: torch.Tensor, dim: int) -> torch.Tensor:
    """The tensor as (rows, length along `dim`): a view where one step reaches every row, else a copy.

    Raises:
        IndexError: x has no such dimension.
    """
    moved = x.movedim(dim, -1) if x.dim() else x.reshape(1)
    return moved.reshape(math.prod(moved.shape[:-1]), moved.shape[-1])  # -1 is ambiguous where a row is empty


def from_rows(rows: torch.Tensor, shape: torch.Size, dim: int) -> torch.Tensor:
    """Rows of results back in the shape whose dimension `dim` was the row."""
    if not shape:
        return rows.reshape(())
    moved = torch.Size([*(size for i, size in enumerate(shape) if i != dim % len(shape)), shape[dim]])
    return rows.view(moved).movedim(-1, dim)
