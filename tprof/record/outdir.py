"""The run directory of `tprof record`: a new one, or one that `--force` may empty as it holds nothing but a run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tprof.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

STARTED: Final = "started"  # a line per Python process of the command, from bootstrap/sitecustomize.py
OURS: Final = re.compile(
    r"\.?run\.json(\.\d+)?|started|target|nsight\.[\w.-]+|process-\d+(\.\d+)?\.(jsonl|launches|torch\.json(\.gz)?)"
)


def prepare(path: Path, *, force: bool) -> Path:
    """Make the directory, private to its user.

    Args:
        path: where.
        force: remove the run that is there; nothing but a run is ever removed.

    Returns:
        Its absolute path.

    Raises:
        UsageError: it exists and is no empty directory, and `force` is not given or it is not just a run.
    """
    path = path.absolute()
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path} is a file; name a directory with -o")
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = sorted(path.iterdir())
    if not found:
        path.chmod(0o700)
        return path
    if strange := [file.name for file in found if not OURS.fullmatch(file.name) or not file.is_file()]:
        raise UsageError(
            f"{path} holds {strange[0]!r}, which is not of a run, so it is left alone; name another directory"
        )
    if not force:
        raise UsageError(f"{path} holds a run already; give --force to replace it, or name another directory")
    for file in found:
        file.unlink()
    return path


def started(directory: Path) -> list[tuple[int, str, str]]:
    """The Python processes of the command: (pid, version of Python, `started` or why it could not be recorded)."""
    try:
        text = (directory / STARTED).read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    words = (line.split() for line in text.splitlines())
    return [(int(w[0]), w[1], w[2]) for w in words if len(w) == 3 and w[0].isdigit()]
