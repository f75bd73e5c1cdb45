"""The small real recordings of `tprof demo`: in the wheel beside this file, in a checkout in `sample_traces/`."""

from __future__ import annotations

from pathlib import Path

from tprof.errors import TprofError

_HERE = Path(__file__).resolve().parent


def sample_paths(package: Path = _HERE) -> dict[str, Path]:
    """Sample traces by name (`h200-torch`, `h200-nsight`), sorted.

    Args:
        package: the folder of the package `tprof`.

    Raises:
        TprofError: neither folder holds a sample.
    """
    for folder in (package / "samples", package.parent / "sample_traces"):
        if found := sorted(folder.glob("*.gz")):
            return {path.name.split(".", 1)[0]: path for path in found}
    raise TprofError(f"{package}: no sample traces are installed; reinstall the distribution triton-tprof")
