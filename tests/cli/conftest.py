"""Running the command line in this process: exit code, stdout, stderr."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tprof.cli import main

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def tprof(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Ran]:
    """`tprof("idle", path, "--top", 3)`; in an empty folder, without settings of the environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("TPROF_FORMAT", "TPROF_TOP", "TPROF_JOBS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: object) -> Ran:
        code = main([str(a) for a in arguments])
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture(scope="session")
def nsight(request: pytest.FixtureRequest) -> Path:
    return request.config.rootpath / "sample_traces" / "h200-nsight.sqlite.gz"


@pytest.fixture(scope="session")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One request with one launch and its kernel, in 10 us."""
    events = [
        {"ph": "X", "cat": "user_annotation", "name": "request 1", "pid": 5, "tid": 5, "ts": 1000, "dur": 10},
        {"ph": "X", "cat": "user_annotation", "name": "tune it", "pid": 5, "tid": 5, "ts": 1000, "dur": 4},
        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 5, "tid": 5, "ts": 1004, "dur": 1,
         "args": {"correlation": 1}},
        {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1006, "dur": 2,
         "args": {"correlation": 1, "stream": 7, "device": 0, "context": 1}},
    ]  # fmt: skip
    path = tmp_path_factory.mktemp("small") / "small.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path


@pytest.fixture(scope="session")
def cpu_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    events = [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 5, "tid": 5, "ts": 1000, "dur": 10}]
    path = tmp_path_factory.mktemp("cpu") / "cpu.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return path
