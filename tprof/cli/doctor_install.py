"""What `tprof doctor` says of this installation: versions, tools, folders."""

from __future__ import annotations

import os
import platform
import shutil
from importlib import metadata
from typing import TYPE_CHECKING, Any

from tprof import __version__
from tprof.cli.doctor_record import have, row
from tprof.machine import cache_folder
from tprof.nsys import programs
from tprof.record import support

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Row = dict[str, Any]
OURS = "triton-tprof"
_NEEDED = ("numpy", "pandas", "pyarrow", "adbc-driver-sqlite", "msgspec", "isal", "jinja2", "rich", "typer")
_OPTIONAL = {
    "torch": "needed to record, not to analyse",
    "triton": "needed to record, not to analyse",
    "nvtx": "needed to record, not to analyse",
    "streamlit": "the app: pip install 'triton-tprof[app]'",
    "plotly": "the app: pip install 'triton-tprof[app]'",
}


def rows() -> list[Row]:
    """Checks of what is installed: rows of item, state, value, advice."""
    return [*_python(), *_packages(), *other_tprof(metadata.distributions()), *_tools(), *_folders()]


def _python() -> Iterator[Row]:
    yield row("tprof", "ok", __version__)
    yield row("python", "ok", platform.python_version())


def _packages() -> Iterator[Row]:
    """Versions, from metadata alone: nothing is imported."""
    for name in _NEEDED:
        yield have(name, support.version(name), f"reinstall {OURS}", "missing")
    for name, why in _OPTIONAL.items():
        yield have(name, support.version(name), why)


def other_tprof(installed: Iterable[metadata.Distribution]) -> Iterator[Row]:
    """PyPI's `tprof` is another project that installs a package of the same name: both together break each other.

    Args:
        installed: distributions to look through.
    """
    for found in installed:
        name = (found.metadata["Name"] or "").lower().replace("_", "-")
        files = found.files or ()
        if name != OURS and (name == "tprof" or any(f.parts[:1] == ("tprof",) for f in files)):
            advice = f"pip uninstall {name}, then reinstall {OURS}: both install the package tprof"
            yield row("another tprof", "conflict", f"{name} {found.version}", advice)


def _tools() -> Iterator[Row]:
    nsys = ", ".join(map(str, programs())) or None
    yield have("nsys", nsys, "only needed to read .nsys-rep; .sqlite exports are read without it")
    yield have("NVIDIA GPU", shutil.which("nvidia-smi"), "only needed to record")


def _folders() -> Iterator[Row]:
    advice = "" if os.environ.get("TPROF_CACHE_DIR") else "TPROF_CACHE_DIR moves it"
    yield row("cache folder", "ok", str(cache_folder()), advice)
