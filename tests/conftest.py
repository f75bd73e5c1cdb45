"""Fixtures that every test may use: where the shared cases, the samples and the checkout are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.skips import ABSENT

os.environ["TPROF_CACHE"] = "0"  # no test fills the user's cache, or takes from it what it means to read

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ROOT / "tests" / "kernels"
NOT_INTERPRETED = {KERNELS / "test_compiles.py", KERNELS / "test_traced.py"}


def pytest_configure(config) -> None:
    """Without a GPU the kernels' tests run through Triton's interpreter, where nothing else runs beside them."""
    paths = {(config.invocation_params.dir / arg.split("::")[0]).resolve() for arg in config.args}
    alone = all(KERNELS in (path, *path.parents) for path in paths)
    if alone and not paths <= NOT_INTERPRETED and not ABSENT:
        import torch

        if not torch.cuda.is_available():
            os.environ["TRITON_INTERPRET"] = "1"


def _shared(variable: str, default: str) -> Path:
    path = Path(os.environ.get(variable) or ROOT / default).resolve()
    if not path.is_dir():
        pytest.skip(
            f"{variable} is not set and {default} is absent; the test needs recordings that the repository lacks"
        )
    return path


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def cases() -> Path:
    """Small odd inputs with their expected readings: `TPROF_CASES`, else `../shared/cases`."""
    return _shared("TPROF_CASES", "../shared/cases")


@pytest.fixture(scope="session")
def traces() -> Path:
    """Large real recordings: `TPROF_TRACES`, else the folder `traces` beside the cases."""
    return _shared("TPROF_TRACES", str(Path(os.environ.get("TPROF_CASES") or "../shared/cases") / "../traces"))


@pytest.fixture(scope="session")
def sample_traces() -> Path:
    """The small real recordings of the repository."""
    return ROOT / "sample_traces"


@pytest.fixture(scope="session")
def kept_code(pytestconfig, tmp_path_factory) -> Path:
    """Cache folder for compiled code: it outlives a test run, as it does for a user, where pytest keeps a cache."""
    cache = getattr(pytestconfig, "cache", None)
    return cache.mkdir("tprof") if cache else tmp_path_factory.mktemp("cache")


@pytest.fixture
def code_folder(kept_code, monkeypatch) -> None:
    """Compiled code comes from `kept_code`, and the scanner is chosen as for a user who set nothing."""
    monkeypatch.setenv("TPROF_CACHE_DIR", str(kept_code))
    monkeypatch.delenv("TPROF_SCANNER", raising=False)
