"""`tprof advise` at the command line: one page, JSON, what is refused."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_one_page_ends_in_what_no_profile_tells(tprof: Callable, nsight: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    ran = tprof("advise", nsight)
    assert ran.code == 0
    assert max(map(len, ran.out.splitlines())) <= 100
    assert "do not write a kernel" in ran.out
    assert ran.out.index("Operators: worth a Triton kernel?") < ran.out.index("What a profile cannot tell")
    assert "maintenance" in ran.out


def test_json_has_every_number(tprof: Callable, nsight: Path) -> None:
    found = json.loads(tprof("advise", nsight, "--job", "4h", "-f", "json").out)
    assert found["job"]["job_ns"] == 4 * 3600 * 10**9
    assert found["job"]["of_job_share"] == pytest.approx(found["job"]["cold_exposed_ns"] / found["job"]["job_ns"])
    matmul = next(row for row in found["operators"] if row["operator"] == "matmul")
    assert (matmul["verdict"], matmul["calls"]) == ("have", 8)
    assert len(found["questions"]) == 8


def test_what_is_refused(tprof: Callable, nsight: Path, cpu_only: Path) -> None:
    assert tprof("advise", nsight, "--job", "long").code == 2
    ran = tprof("advise", cpu_only)
    assert (ran.code, ran.out) == (4, "")
    assert "no device events" in ran.err
