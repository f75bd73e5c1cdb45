"""The small real recordings: in the wheel beside this file, in a checkout in `sample_traces/`."""

from __future__ import annotations

from pathlib import Path

from tprof.errors import TprofError

_HERE = Path(__file__).resolve().parent


def sample_paths(package: Path = _HERE) -> dict[str, Path]:
    """Samples by name, sorted: run directories (`cold-torch`, …) and files of a profiler alone (`h200-torch`, …).

    Args:
        package: the folder of the package `tprof`.

    Raises:
        TprofError: neither folder holds a sample.
    """
    for folder in (package / "samples", package.parent / "sample_traces"):
        found = [*folder.glob("*.gz"), *(said.parent for said in folder.glob("*/run.json"))]
        if found:
            return {path.name.split(".", 1)[0]: path for path in sorted(found, key=lambda path: path.name)}
    raise TprofError(f"{package}: no sample traces are installed; reinstall the distribution triton-tprof")
