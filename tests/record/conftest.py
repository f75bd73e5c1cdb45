"""Fixtures of the recorder's tests: they need triton and torch, but no GPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.skips import ABSENT

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session", autouse=True)
def _quiet() -> None:
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")  # 3.9 warns where it is unset


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory) -> Path:
    """A disk cache for all tests that do not care what is in it."""
    return tmp_path_factory.mktemp("triton-cache")


@pytest.fixture
def cache(shared_cache, monkeypatch) -> Path:
    """Triton's disk cache is `shared_cache`, and nothing is in memory."""
    return _use(shared_cache, monkeypatch)


@pytest.fixture
def cold_cache(tmp_path, monkeypatch) -> Path:
    """Triton's disk cache is empty, and nothing is in memory."""
    return _use(tmp_path / "cache", monkeypatch)


def _use(folder: Path, monkeypatch) -> Path:
    if ABSENT:
        pytest.skip(f"{ABSENT} not installed: nothing to record")
    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder))
    from support import record_kernels

    record_kernels.forget(record_kernels.add)
    record_kernels.forget(record_kernels.pick)
    return folder


@pytest.fixture
def stub(cache):
    """The stub driver, with little shared memory."""
    from support.record_demo import SHARED

    from tprof.testing.stub import stub_driver

    with stub_driver(max_shared_mem=SHARED) as driver:
        yield driver


@pytest.fixture
def python(shared_cache):
    """Run a script in a Python of its own, with the stub driver's helpers importable: `python(code, *args, **env)`."""
    if ABSENT:
        pytest.skip(f"{ABSENT} not installed: nothing to record")

    def run(code: str, *args: object, background: bool = False, **env: str):
        paths = [str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "TRITON_CACHE_DIR": str(shared_cache), "PYTHONPATH": os.pathsep.join(paths), **env}
        command = [sys.executable, "-W", "error::DeprecationWarning:tprof", "-c", code, *map(str, args)]
        if background:
            return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)

    return run
