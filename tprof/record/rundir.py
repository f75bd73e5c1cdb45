"""The run directory: private to its user, one run.json, and two files per process."""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tprof.record import clock

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.record.settings import Settings

FORMAT: Final = "tprof-run"
FORMAT_VERSION: Final = 1
PREFIXES: Final = ("TRITON_", "TORCHINDUCTOR_", "TORCH_", "TPROF_")
VARIABLES: Final = ("CUDA_VISIBLE_DEVICES", "RANK", "WORLD_SIZE", "LOCAL_RANK")
SECRET: Final = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "API_KEY", "_URL", "REDIS")
PACKAGES: Final = ("torch", "triton", "nvtx")

T = TypeVar("T")


def create(settings: Settings) -> Path:
    """Make the run directory (0700) and its run.json, unless another process of the run did.

    Raises:
        OSError: if it cannot be made or written.
    """
    directory = Path(os.path.abspath(settings.out))  # noqa: PTH100 - `resolve` would follow the user's links
    if not directory.exists() or not any(directory.iterdir()):
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.chmod(0o700)
    if not (directory / "run.json").exists():
        _write_whole(directory / "run.json", describe(settings))
    return directory


def claim(directory: Path, make: Callable[[Path], T], suffix: str) -> tuple[T, str]:
    """Open the first free name for this process (pids come again, and hosts may share the directory).

    Returns:
        What `make(path)` gave, and the stem of the name.
    """
    for attempt in range(10_000):
        stem = f"process-{os.getpid()}" + (f".{attempt}" if attempt else "")
        try:
            return make(directory / (stem + suffix)), stem
        except FileExistsError:
            continue
    raise OSError(f"{directory}: every name for process {os.getpid()} is taken; record into a new directory")


def describe(settings: Settings) -> dict[str, Any]:
    """The contents of run.json; environment and arguments by allow-list only."""
    pair = clock.pair()
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "created": pair._asdict(),
        "host": socket.gethostname(),
        "program": program(),
        "versions": versions(),
        "environment": environment(),
        "settings": settings.to_dict(),
    }


def program() -> str:
    """Name of the program, without its folder and arguments."""
    return Path(sys.argv[0]).name if getattr(sys, "argv", None) else ""


def versions() -> dict[str, str]:
    """Of tprof, Python and the libraries that are recorded; a missing library has no entry."""
    found = {"tprof": _version_of_tprof(), "python": ".".join(map(str, sys.version_info[:3]))}
    for name in PACKAGES:
        module = sys.modules.get(name)
        version = getattr(module, "__version__", None) or _installed(name)
        if version:
            found[name] = str(version)
    return found


def _version_of_tprof() -> str:
    import tprof  # noqa: PLC0415 - the package imports this module lazily, and so does this one the package

    return tprof.__version__


def _installed(name: str) -> str | None:
    from importlib import metadata  # noqa: PLC0415 - slow to import, and only needed for what is not imported itself

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def environment() -> dict[str, str]:
    """The variables that change what is recorded, and no others; none whose name or value smells of a secret."""
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if (name.startswith(PREFIXES) or name in VARIABLES) and not any(word in name.upper() for word in SECRET)
    }


def _write_whole(path: Path, content: dict[str, Any]) -> None:
    """Write so that a reader sees all or nothing, and the first of several processes wins."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
        json.dump(content, file, indent=1)
    try:
        os.link(temporary, path)
    except FileExistsError:
        return
    except OSError:  # a file system without hard links
        temporary.replace(path)
        return
    finally:
        temporary.unlink(missing_ok=True)
