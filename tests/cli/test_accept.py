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


def test_a_part_that_fails_trips_the_gate_and_the_report_is_json(tprof: Callable, root: Path, tmp_path: Path) -> None:
    planted = f"{root / 'tests' / 'support' / 'planted.py'}:STALE"
    ran = tprof("accept", planted, "--cpu", "-o", tmp_path / "report.json")
    assert (ran.code, ran.out) == (3, "")
    report = json.loads((tmp_path / "report.json").read_text())
    (kernel,) = report["kernels"]
    assert (report["target"], kernel["kernel"], kernel["verdict"]) == (planted, "stale fallback", "do not")
    assert {part["part"]: part["state"] for part in kernel["parts"]} == {
        "correctness": "passed", "stability": "passed", "performance": "not run", "compile cost": "passed",
        "end to end": "not run", "fallback": "failed", "maintenance": "passed"}  # fmt: skip


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
