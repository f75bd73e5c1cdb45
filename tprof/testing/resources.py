"""What the stub driver knows of devices and cubins."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final, NamedTuple

import triton

# Device properties by capability (None: of any): shared memory that a block may opt in to, multiprocessors.
PROPERTIES: Final[dict[int | None, dict[str, int]]] = {
    None: {
        "max_shared_mem": 101376, "max_num_regs": 65536, "multiprocessor_count": 132, "warpSize": 32,
        "sm_clock_rate": 1980000, "mem_clock_rate": 2619000, "mem_bus_width": 5120,
    },
    80: {"max_shared_mem": 166912, "multiprocessor_count": 108},
    86: {"max_shared_mem": 101376, "multiprocessor_count": 84},
    89: {"max_shared_mem": 101376, "multiprocessor_count": 142},
    90: {"max_shared_mem": 232448, "multiprocessor_count": 132},
    100: {"max_shared_mem": 232448, "multiprocessor_count": 148},
}  # fmt: skip


class Launch(NamedTuple):
    """A launch that the stub took."""

    name: str
    grid: tuple[int, ...]
    stream: int
    args: tuple[Any, ...]
    t_ns: int


class Load(NamedTuple):
    """A module load that the stub pretended."""

    name: str
    module: int
    size: int
    shared_bytes: int
    device: int
    registers: int
    spills: int
    t_ns: int


@functools.lru_cache(maxsize=256)
def resources(cubin: bytes) -> dict[str, int]:
    """REG, STACK, SHARED and LOCAL of a cubin, by the cuobjdump that Triton bundles; {} where it bundles none."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not os.access(tool, os.X_OK):
        return {}
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [str(tool), "-res-usage", file.name]
        text = subprocess.run(command, capture_output=True, text=True, check=False).stdout  # noqa: S603 - Triton's own
    return {name: int(value) for name, value in re.findall(r"\b(REG|STACK|SHARED|LOCAL):(\d+)", text)}
