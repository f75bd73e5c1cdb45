"""The device that serves: which it is, its context, and the handles that its libraries make at their first call."""

from __future__ import annotations

import sys
import time
from typing import Any

from tprof.prepare.report import Item
from tprof.record import guard


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


def touch() -> list[Item]:
    """Make torch's CUDA context and its cuBLAS handle, where the program has imported torch and there is a GPU.

    cuDNN is left alone: loading it takes long and much memory, and few programs that use Triton call it.
    """
    torch = sys.modules.get("torch")
    begun = time.perf_counter_ns()
    try:
        if torch is None or not torch.cuda.is_available():
            return []
        x = torch.ones(16, 16, device="cuda", dtype=torch.float16)
        torch.addmm(x, x, x)
        torch.cuda.synchronize()
    except guard.FAILURES as error:  # out of memory, or a driver that does not fit: the first request will say it
        return [Item("library", "cuBLAS", "failed", time.perf_counter_ns() - begun, f"{type(error).__name__}: {error}")]
    return [Item("library", "cuBLAS", "done", time.perf_counter_ns() - begun)]
