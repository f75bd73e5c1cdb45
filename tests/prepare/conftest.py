"""Fixtures of the tests of preparing: they need triton and torch, but no GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from record.conftest import _quiet, python, shared_cache  # noqa: F401 - the same fixtures here
from support.skips import ABSENT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="session")
def recorded(tmp_path_factory) -> Path:
    """A recording of the incident, everything cold."""
    if ABSENT:
        pytest.skip(f"{ABSENT} not installed: nothing to record")
    from support import warm_demo

    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("recorded")
        patch.setenv("TRITON_CACHE_DIR", str(folder / "triton"))
        warm_demo.forget()
        warm_demo.main(str(folder / "cold"))
    return folder / "cold"


@pytest.fixture(scope="session")
def plan(recorded):
    """What is worth preparing in it."""
    from tprof.prepare.plan import Limits, make

    return make([recorded], Limits())
