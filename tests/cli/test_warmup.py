from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tprof.prepare.plan_file import Plan

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WRITE = "import os, sys; open(sys.argv[1], 'w').write(os.environ['TPROF_PLAN']); raise SystemExit(7)"


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    file = tmp_path / "plan.json"
    file.write_text(Plan([], [], [], {}, {}).text())
    return file


@pytest.mark.parametrize("dashes", [["--"], []])
def test_the_command_gets_the_plan_and_gives_its_exit_code(
    tprof: Callable, plan: Path, tmp_path: Path, dashes: list[str]
) -> None:
    assert tprof("warmup", "plan.json", *dashes, sys.executable, "-c", WRITE, tmp_path / "told").code == 7
    assert (tmp_path / "told").read_text() == str(plan)


def test_a_plan_that_cannot_be_used_is_told_before_anything_runs(tprof: Callable, plan: Path) -> None:
    plan.write_text("{")
    ran = tprof("warmup", plan, "--", sys.executable, "-c", "print('ran')")
    assert (ran.code, ran.out) == (1, "")
    assert "not complete JSON" in ran.err


def test_a_command_that_does_not_exist(tprof: Callable, plan: Path) -> None:
    ran = tprof("warmup", plan, "--", "no-such-program")
    assert ran.code == 127
    assert "not found" in ran.err
    assert tprof("warmup", plan, "--").code == 2
