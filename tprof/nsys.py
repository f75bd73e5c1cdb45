"""Where Nsight Systems lies on a machine: reading exports its reports with it, recording runs it."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Final

_PLACES: Final = (
    "usr/local/cuda*/bin/nsys",
    "opt/nvidia/nsight-systems*/**/nsys",
    "usr/local/cuda*/nsight-compute*/host/target-linux-*/nsys",  # Nsight Compute carries a whole Nsight Systems
    "opt/nvidia/nsight-compute*/**/host/target-linux-*/nsys",
)


def programs(root: Path = Path("/")) -> list[Path]:
    """Every `nsys` that can be started, each once: that of PATH, then those in the usual places, newest first.

    Args:
        root: where the usual places begin.
    """
    first = shutil.which("nsys")
    found = sorted((p for place in _PLACES for p in root.glob(place) if _starts(p)), key=_version, reverse=True)
    return list({p.resolve(): p for p in (*([Path(first)] if first else []), *found)}.values())


def _starts(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _version(path: Path) -> list[int]:
    """The numbers of its folders: NVIDIA names them for the version."""
    return [int(n) for n in re.findall(r"\d+", str(path))]
