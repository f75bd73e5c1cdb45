"""How the kernels' tests run: on a GPU for real, without one through Triton's interpreter, and then on their own.

`pytest tests/kernels` sets TRITON_INTERPRET before anything is imported (tests/conftest.py). Triton reads it once, so
in a run of the whole suite, whose recorder needs the real Triton, these tests are skipped. So is test_compiles.py,
which takes minutes, unless it is named. `make test` runs all.
"""

from __future__ import annotations

import os

import pytest
from support.skips import ABSENT

REAL = ("test_compiles.py", "test_traced.py")  # need the real Triton, and pretend that there is a GPU


def pytest_addoption(parser) -> None:
    parser.addoption("--shard", metavar="i/n", help="run every n-th test only, from the i-th: 1/4, 2/4, 3/4, 4/4")


def pytest_configure(config) -> None:
    """Shards may run side by side on one GPU: each has its part of the memory."""
    _, shards = _shard(config)
    if shards > 1:
        import torch

        if torch.cuda.is_available():
            torch.cuda.set_per_process_memory_fraction(0.95 / shards)


def pytest_ignore_collect(collection_path) -> bool | None:
    return True if ABSENT and collection_path.name.startswith("test_") else None


def pytest_collection_modifyitems(config, items) -> None:
    shard, shards = _shard(config)
    ours = [item for item in items if item.path.parent.name == "kernels"]
    others = set(ours) - set(ours[shard - 1 :: shards])
    items[:] = [item for item in items if item not in others]
    for item in ours:
        item.add_marker(pytest.mark.filterwarnings("ignore::RuntimeWarning"))  # the interpreter's numpy: masked lanes
        if why := _why_not(item.path.name, named=any(item.path.name in arg for arg in config.args)):
            item.add_marker(pytest.mark.skip(why))


def _shard(config) -> tuple[int, int]:
    shard, shards = map(int, (config.getoption("--shard", None) or "1/1").split("/"))
    return shard, shards


def _why_not(file: str, *, named: bool) -> str:
    """Why a file's tests cannot run in this process."""
    import torch

    interpreted, gpu = os.environ.get("TRITON_INTERPRET") == "1", torch.cuda.is_available()
    if file in REAL and gpu:  # what the stub driver loaded would stay in Triton's caches, and be launched for real
        return "pretends to have a GPU: tests/gpu/test_kernels.py has the real one"
    if file in REAL and interpreted:
        return "needs the real Triton: run it without TRITON_INTERPRET"
    if file in REAL:
        return "takes minutes: name it to run it" if file == "test_compiles.py" and not named else ""
    return "" if interpreted or gpu else "no GPU: run `pytest tests/kernels` on its own"
