"""One batch of every recording at hand, in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest
from support.batched import batch

if TYPE_CHECKING:
    from pathlib import Path

    from tprof.analyze import Result
    from tprof.batch import Folder


class Whole(NamedTuple):
    """What was asked for, and what became of it."""

    sources: dict[str, Path]
    folder: Folder
    result: Result


@pytest.fixture(scope="session")
def whole(cases: Path, sample_traces: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The shared cases of both profilers, and the project's own recordings."""
    sources = {"nsight": cases / "nsight", "torch_real": cases / "torch_real", "samples": sample_traces}
    return Whole(sources, *batch(sources.values(), tmp_path_factory.mktemp("whole") / "out"))
