"""`tprof accept`: exit codes and formats; what is judged is tested in tests/accept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from support.skips import needs_triton

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = needs_triton


def test_a_kernel_of_ours_is_judged_without_a_gpu(tprof: Callable, root: Path, tmp_path: Path) -> None:
    planted = f"{root / 'tests' / 'support' / 'planted.py'}:MEAN"
    ran = tprof("accept", planted, "--cpu", "-o", tmp_path / "report.json")
    assert (ran.code, ran.out) == (0, "")
    report = json.loads((tmp_path / "report.json").read_text())
    (kernel,) = report["kernels"]
    assert (report["target"], kernel["kernel"], kernel["verdict"]) == (planted, "mean", "cannot say")
    assert [part["part"] for part in kernel["parts"]] == [
        "correctness", "stability", "performance", "compile cost", "end to end", "fallback", "maintenance"]  # fmt: skip


def test_a_part_that_fails_trips_the_gate(tprof: Callable, root: Path) -> None:
    ran = tprof("accept", f"{root / 'tests' / 'support' / 'planted.py'}:STALE", "--cpu", "-f", "markdown")
    assert ran.code == 3
    assert "## The seven parts" in ran.out
    assert "| fallback | failed |" in ran.out


def test_no_gpu_is_said_and_so_is_what_helps(tprof: Callable) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("a GPU is here")
    ran = tprof("accept", "tprof_kernels.softmax")
    assert (ran.code, ran.out) == (4, "")
    assert "--cpu" in ran.err


def test_what_is_no_kernel_is_a_usage_error(tprof: Callable) -> None:
    ran = tprof("accept", "tprof.errors", "--cpu")
    assert ran.code == 2
    assert "has no SPECS of KernelSpec" in ran.err
