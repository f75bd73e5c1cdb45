"""Reasons to skip."""

from __future__ import annotations

import importlib.util

import pytest

from tprof import machine

ABSENT = " and ".join(name for name in ("torch", "triton") if importlib.util.find_spec(name) is None)
needs_triton = pytest.mark.skipif(bool(ABSENT), reason=f"{ABSENT} not installed: nothing to record")
needs_numba = pytest.mark.skipif(not machine.can_compile(), reason="needs numba: pip install '.[fast]'")
