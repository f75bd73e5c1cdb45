"""What can be recorded where: the platforms, Triton's versions, and which nvtx shows its ranges to which Nsight."""

from __future__ import annotations

import re
from typing import Final

OLDEST_TRITON: Final = (3, 2)
NEWEST_TRITON: Final = (3, 9)  # that the tests ran on
SILENT_NVTX: Final = (0, 2, 12)  # from here on, ranges show only ...
NEEDS_NSIGHT: Final = (2024, 3)  # ... from here on
PIN_NVTX: Final = "nvtx<0.2.12"
_OTHERS: Final = {"rocm": "ROCm", "xpu": "XPU", "hip": "ROCm"}
_TRITONS: Final = ("pytorch-triton-rocm", "pytorch-triton-xpu", "triton-rocm", "triton-xpu")


def refusal() -> str | None:
    """Why nothing is recorded on this platform, as a sentence; None where it can be."""
    found = next((f"{name} {v}" for name in _TRITONS if (v := version(name))), None)
    torch = version("torch") or ""
    if found is None and any(word in torch for word in _OTHERS):
        found = f"torch {torch}"
    if found is None:
        return None
    platform = next(name for word, name in _OTHERS.items() if word in found)
    return (
        f"{found} is for {platform}, on which recording is untested and refused; traces of torch.profiler can be read"
    )


def version(distribution: str) -> str | None:
    """Version of an installed distribution, by its metadata alone."""
    from importlib import metadata  # noqa: PLC0415 - slow to import, and asked for only where something is said

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def numbers(text: str | None) -> tuple[int, ...]:
    """The leading numbers of a version: `2024.2.3.38-abc` -> (2024, 2, 3, 38)."""
    match = re.search(r"\d+(?:\.\d+)*", text or "")
    return tuple(int(n) for n in match[0].split(".")) if match else ()


def triton_advice(found: str | None) -> str:
    """What stands in the way of recording this version of Triton; empty where nothing does."""
    if found is None:
        return "nothing of Triton can be recorded: pip install 'triton-tprof[record]'"
    if numbers(found)[:2] < OLDEST_TRITON:
        return f"tprof records Triton {_dotted(OLDEST_TRITON)} and newer"
    if numbers(found)[:2] > NEWEST_TRITON:
        return (
            f"newer than {_dotted(NEWEST_TRITON)}, the last that was tested; hooks that fail are named and switched off"
        )
    return ""


def nvtx_advice(nvtx: str | None, nsight: str | None) -> str:
    """What to do where ranges of this nvtx do not show under this Nsight Systems; empty where they do."""
    if nvtx is None:
        return "without it Nsight Systems shows no ranges of tprof: pip install nvtx"
    if nsight is None or numbers(nvtx) < SILENT_NVTX or numbers(nsight) >= NEEDS_NSIGHT:
        return ""
    return (
        f"nvtx {nvtx} shows no ranges under Nsight Systems {nsight}: "
        f"pip install '{PIN_NVTX}', or use Nsight Systems {_dotted(NEEDS_NSIGHT)} or newer"
    )


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
