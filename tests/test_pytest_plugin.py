"""The pytest plugin: a test that compiles more than its budget fails, and a test can read its own recording."""

from __future__ import annotations

import os
from pathlib import Path

from support.skips import needs_triton

pytestmark = needs_triton
pytest_plugins = "pytester"

ROOT = Path(__file__).resolve().parents[1]
CONFTEST = """
import pytest
from support import record_kernels as kernels
from support.on_stub import cold_stub

@pytest.fixture
def add(monkeypatch, tmp_path):
    import torch
    x, o = torch.ones(1024), torch.empty(1024)
    with cold_stub(monkeypatch, tmp_path / "cache"):
        yield lambda n: kernels.add[(8,)](x, x, o, n, B=128)
"""
TESTS = """
import pytest

@pytest.fixture
def warm(add):
    add(1024)
    return add

@pytest.mark.tprof_budget(compile_s=0, autotune_s=0)
def test_warm(warm):
    warm(1024)

@pytest.mark.tprof_budget(compile_s=0, autotune_s=0)
def test_cold(warm):
    warm(1000)

@pytest.mark.tprof_budget(compile_s=60)
def test_has_time(warm):
    warm(1000)

@pytest.mark.tprof_budget(compile_s=0)
def test_fails_by_itself(warm):
    warm(1000)
    assert not "its own"

def test_reads(add, tprof_trace):
    add(1024)
    add(1000)
    trace = tprof_trace.read()
    assert trace.frame("compiles").kernel.to_list() == ["add", "add"]
    assert tprof_trace.path.name == "tprof-run"

def test_need_not_read(add, tprof_trace):
    add(1024)
"""


def test_budgets_and_recordings(pytester, monkeypatch):
    paths = [str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(TESTS)
    result = pytester.runpytest_subprocess("-p", "tprof.pytest_plugin", "--strict-markers", timeout=120)
    result.assert_outcomes(passed=4, failed=2)
    result.stdout.fnmatch_lines([
        "*tprof_budget: compile_s is * s where 0 s are allowed: add * s",
        "*its own*",
    ])  # fmt: skip
    result.stdout.no_fnmatch_line("*test_fails_by_itself*tprof_budget: *")
