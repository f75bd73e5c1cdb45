"""The device that serves: which it is, its context, and the handles that its libraries make at their first call."""

from __future__ import annotations

import sys
from typing import Any

from tprof.record import guard
from tprof.record.describe import hash_of_triton


def target() -> str:
    """`backend:architecture` of the device that Triton compiles for."""
    from triton.runtime import driver  # noqa: PLC0415 - the program has chosen when Triton is imported

    found = driver.active.get_current_target()
    return f"{found.backend}:{found.arch}"


def device() -> Any:
    """Number of the device of this thread; None where Triton has no driver, and nothing will be compiled."""
    try:
        from triton.runtime import driver  # noqa: PLC0415 - as above

        return driver.active.get_current_device()
    except guard.FAILURES:  # `find_jobs` says it
        return None


def use(number: Any) -> None:
    """Make a device that of this thread: CUDA gives every new thread the first one."""
    from triton.runtime import driver  # noqa: PLC0415 - as above

    driver.active.set_current_device(number)


def has_gpu() -> bool:
    """Whether the program has imported torch, and torch finds a GPU."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_available())


def cublas() -> None:
    """Make torch's CUDA context and the cuBLAS handle of this thread.

    cuDNN is left alone: loading it takes long and much memory, and few programs that use Triton call it.
    """
    torch = sys.modules["torch"]
    x = torch.ones(16, 16, device="cuda", dtype=torch.float16)
    torch.addmm(x, x, x)
    torch.cuda.synchronize()


def inductor(device: str = "cuda") -> None:
    """Have something small compiled: what Dynamo and Inductor import and build at their first graph takes a second."""
    torch = sys.modules["torch"]
    with torch.no_grad():
        torch.compile(lambda x: x + 1)(torch.ones(16, device=device))


def triton() -> None:
    """Have Triton hash its own files: every first compile or lookup of a process waits for that."""
    hashed = hash_of_triton()
    if hashed is not None:
        hashed()
