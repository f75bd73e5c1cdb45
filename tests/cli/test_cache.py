from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tprof.read import cache

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPROF_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("TPROF_CACHE", raising=False)
    monkeypatch.setattr(cache, "SMALL_BYTES", 1)
    monkeypatch.setattr(cache, "_RACY_NS", -1 << 62)


def test_ls_and_clear(tprof: Callable, small: Path, tmp_path: Path) -> None:
    assert tprof("kernels", small).code == 0
    told = json.loads(tprof("cache", "ls", "--format", "json").out)
    [entry] = told["entries"]
    assert (entry["source"], told["folder"], told["limit_bytes"]) == (str(small), str(tmp_path / "cache"), 20 * 10**9)
    assert entry["kept_bytes"] == told["kept_bytes"] > 0
    shown = tprof("cache", "ls").out
    assert small.name in shown
    assert "18.6 GiB" in shown
    assert tprof("cache", "clear").out.startswith("removed 1 kept trace, ")
    assert json.loads(tprof("cache", "ls", "--format", "json").out)["entries"] == []


def test_no_cache(tprof: Callable, small: Path) -> None:
    assert tprof("kernels", small, "--no-cache").code == 0
    assert cache.entries() == []


def test_a_wrong_size_is_a_usage_error(tprof: Callable, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPROF_CACHE_SIZE", "lots")
    ran = tprof("summary", small)
    assert (ran.code, ran.out) == (2, "")
    assert "TPROF_CACHE_SIZE='lots'" in ran.err
