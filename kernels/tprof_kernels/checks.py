"""What every public function asks of its arguments, with errors that name the argument and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton

from tprof_kernels.tuned import INTERPRETED

if TYPE_CHECKING:
    from collections.abc import Sequence

INT32_MAX = 2**31 - 1  # kernels compute offsets in 32 bits, which costs registers and time if widened
FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def check_dtype(allowed: Sequence[torch.dtype], **tensors: torch.Tensor | None) -> None:
    """Each tensor has one of the allowed dtypes.

    Raises:
        TypeError: one has not.
    """
    for name, tensor in tensors.items():
        if tensor is not None and tensor.dtype not in allowed:
            names = ", ".join(str(dtype).removeprefix("torch.") for dtype in allowed)
            raise TypeError(f"{name} is {tensor.dtype}; supported are {names}; convert it with {name}.to(...)")


def check_device(**tensors: torch.Tensor | None) -> None:
    """All tensors are on one device where Triton runs.

    Raises:
        ValueError: they are not.
    """
    given = {name: tensor.device for name, tensor in tensors.items() if tensor is not None}
    if len(set(given.values())) > 1:
        places = ", ".join(f"{name} on {device}" for name, device in given.items())
        raise ValueError(f"all tensors must be on one device, but {places}; move them with .to(device)")
    name, device = next(iter(given.items()))
    if not runs_here(device):
        raise ValueError(
            f"{name} is on {device}, but Triton kernels need an NVIDIA GPU; move it with {name}.cuda(), "
            "or call the fallback that tprof_kernels.KERNELS names"
        )


def check_size(**tensors: torch.Tensor | None) -> None:
    """Every element can be reached by a 32-bit offset.

    Raises:
        ValueError: one cannot.
    """
    for name, tensor in tensors.items():
        if tensor is not None and reach(tensor) > INT32_MAX:
            raise ValueError(
                f"{name} of shape {tuple(tensor.shape)} spans {reach(tensor):,} elements, more than 32-bit offsets "
                f"reach ({INT32_MAX:,}); split it, for example with {name}.chunk(2)"
            )


def reach(tensor: torch.Tensor) -> int:
    """Offset of the last element, in elements, plus one; 0 of an empty tensor."""
    if tensor.numel() == 0:
        return 0
    return 1 + sum((size - 1) * abs(step) for size, step in zip(tensor.shape, tensor.stride(), strict=True))


def check_shape(name: str, tensor: torch.Tensor, expected: tuple[int, ...]) -> None:
    """A tensor has the shape that follows from the others.

    Raises:
        ValueError: it has another.
    """
    if tuple(tensor.shape) != expected:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}, but {expected} follows from the other arguments")


def runs_here(device: torch.device) -> bool:
    """Whether Triton runs there: a CUDA device, any under the interpreter, else where the active driver says."""
    if device.type == "cuda" or INTERPRETED:
        return True
    try:
        return bool(triton.runtime.driver.active.get_active_torch_device().type == device.type)
    except RuntimeError:  # Triton's word for: no driver
        return False


def has_float8(device: torch.device) -> bool:
    """Whether the GPU multiplies float8_e4m3fn: from compute capability 8.9 on; the interpreter does."""
    return INTERPRETED or (runs_here(device) and triton.runtime.driver.active.get_current_target().arch >= 89)


def check_float8(**tensors: torch.Tensor | None) -> None:
    """Float8 values are on a GPU that has them.

    Raises:
        ValueError: they are not.
    """
    for name, tensor in tensors.items():
        if tensor is not None and tensor.dtype == torch.float8_e4m3fn and not has_float8(tensor.device):
            raise ValueError(f"{name} is float8_e4m3fn, which GPUs before compute capability 8.9 lack; use bfloat16")
