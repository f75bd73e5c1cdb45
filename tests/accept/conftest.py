"""Acceptance needs torch and triton; its processes are its own, so an interpreter in this one does no harm."""

from __future__ import annotations

from support.skips import ABSENT


def pytest_ignore_collect(collection_path) -> bool | None:
    return True if ABSENT and collection_path.name.startswith("test_") else None
