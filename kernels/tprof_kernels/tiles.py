"""How a matrix is cut into tiles of whole rows, and how many programs share a sum over rows."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch
import triton

if TYPE_CHECKING:
    from collections.abc import Callable

PER_MULTIPROCESSOR = 4  # so many programs of 4 to 8 warps keep the memory busy; each costs a row of partial sums


def row_grid(rows: int, block: int) -> Callable[[dict[str, Any]], tuple[int]]:
    """Grid of programs that own TILE / block whole rows each, at least one."""
    return lambda meta: (triton.cdiv(rows, max(1, meta["TILE"] // block)),)


def steps(rows: torch.Tensor | None) -> tuple[int, int]:
    """From row to row and from column to column; of an argument that is not given, none."""
    return (0, 0) if rows is None else (rows.stride(0), rows.stride(1))


def fitting(least: int, most: int) -> Callable[..., list[triton.Config]]:
    """`early_config_prune`: candidates that give each thread so many elements of a tile of whole rows.

    Fewer leave too little in flight, more spill registers; neither is worth a compile.
    """

    def prune(configs: list[triton.Config], _arguments: dict[str, Any], **meta: Any) -> list[triton.Config]:
        def each(config: triton.Config) -> int:
            return int(max(config.kwargs["TILE"], meta["BLOCK_N"]) // (32 * config.num_warps))

        return [config for config in configs if least <= each(config) <= most]

    return prune


def programs(device: torch.device, rows: int, columns: int = 1) -> int:
    """Programs along the rows, where `columns` stand beside each: they fill the device once, and none is without a row.

    A sum over rows is split by this number, so it depends on the device and the shape alone, never on a config.
    """
    return max(1, min(rows, _resident(device) // columns))


@cache
def _resident(device: torch.device) -> int:
    if device.type != "cuda":
        return PER_MULTIPROCESSOR  # the interpreter, as one multiprocessor
    return PER_MULTIPROCESSOR * torch.cuda.get_device_properties(device).multi_processor_count
