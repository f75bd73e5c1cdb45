"""What every test of the app needs."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def _main_module_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """AppTest puts the script in the place of `__main__`, which processes that are spawned later would run."""
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
