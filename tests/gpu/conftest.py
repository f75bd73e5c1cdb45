"""Tests that need an NVIDIA GPU, torch and triton; anywhere else they are skipped, and say why."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.skips import ABSENT

if TYPE_CHECKING:
    from pathlib import Path


def _missing() -> str:
    """Why nothing here can run; empty on a machine where it can."""
    if ABSENT:
        return f"{ABSENT} not installed"
    try:
        listed = subprocess.run(["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return "no NVIDIA GPU (nvidia-smi is not here)"
    return "" if "GPU 0" in listed.stdout else "no NVIDIA GPU (nvidia-smi lists none)"


WHY = _missing()


def python_path(root: Path) -> str:
    """PYTHONPATH of a process that runs the examples."""
    return os.pathsep.join(filter(None, [str(root), str(root / "kernels"), os.environ.get("PYTHONPATH", "")]))


@pytest.fixture(autouse=True)
def _needs_a_gpu() -> None:
    if WHY:
        pytest.skip(f"needs a GPU: {WHY}")
