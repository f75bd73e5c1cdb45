"""Plugin of pytest: a budget of compiling and tuning per test, and a recording of a test.

@pytest.mark.tprof_budget(compile_s=0, autotune_s=0)
def test_a_warm_request_compiles_nothing(server): ...

def test_one_launch(tprof_trace):
    kernel[grid](x)
    assert len(tprof_trace.read().frame("compiles")) == 1
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    import tprof

MARKER = "tprof_budget(compile_s=None, autotune_s=None): seconds that the test may spend on compiling and on tuning"


def pytest_configure(config: pytest.Config) -> None:
    """Say what the marker means."""
    config.addinivalue_line("markers", MARKER)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Measure a marked test; it fails where it passed but spent too much."""
    marker = item.get_closest_marker("tprof_budget")
    if marker is None:
        return (yield)
    from tprof.prepare.budget import Budget  # noqa: PLC0415 - most sessions of pytest need nothing of it

    with Budget(**marker.kwargs) as budget:
        result = yield
    if overspent := budget.broken():
        pytest.fail(f"tprof_budget: {overspent}", pytrace=False)
    return result


class Recorded:
    """The recording of a test: `path` is its run directory."""

    def __init__(self, path: Path) -> None:
        from tprof.record import trace  # noqa: PLC0415 - as above

        self.path, self._trace = path, trace(path, nvtx=False)
        self._trace.__enter__()
        self._open = True

    def stop(self) -> None:
        """End the recording."""
        if self._open:
            self._open = False
            self._trace.__exit__(None, None, None)

    def read(self) -> tprof.Trace:
        """End the recording and read it.

        Raises:
            SourceError: nothing was recorded.
        """
        from tprof import load  # noqa: PLC0415 - as above

        self.stop()
        return load(self.path)


@pytest.fixture
def tprof_trace(tmp_path: Path) -> Iterator[Recorded]:
    """Records the test into a directory of its own."""
    recorded = Recorded(tmp_path / "tprof-run")
    yield recorded
    recorded.stop()
