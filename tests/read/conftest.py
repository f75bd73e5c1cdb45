"""Fixtures of the readers' tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def kept_code(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Cache folder for compiled code: it outlives a test run, as it does for a user, where pytest keeps a cache."""
    cache = getattr(pytestconfig, "cache", None)
    return cache.mkdir("tprof") if cache else tmp_path_factory.mktemp("cache")


@pytest.fixture
def code_folder(kept_code: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled code comes from `kept_code`, and the scanner is chosen as for a user who set nothing."""
    monkeypatch.setenv("TPROF_CACHE_DIR", str(kept_code))
    monkeypatch.delenv("TPROF_SCANNER", raising=False)
