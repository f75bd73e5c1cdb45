"""Nsight Systems around a recorded command: which one, with which flags, and its report as SQLite in the run."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from tprof.errors import TprofError
from tprof.nsys import programs
from tprof.record.support import numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# `--wait=primary`: with all processes awaited, a compile pool that lives on hangs the capture, and all is lost.
FLAGS: Final = (
    "--trace=cuda,nvtx,osrt", "--sample=none", "--cpuctxsw=none", "--wait=primary", "--cuda-graph-trace=node",
    "--force-overwrite=true",
)  # fmt: skip
LIBRARIES: Final = "apt-get install libdw1 libelf1 libbz2-1.0 liblzma5 libzstd1"
GET_IT: Final = (
    "install nsight-systems (NVIDIA's package, or Debian's nsight-systems), or Nsight Compute 2025.3 or newer"
)
OUT, ERR = 8, 9  # where the command finds the stdout and stderr that it is to have; nsys writes into a log
_WRAPPER: Final = f'echo $$ >"$0"; exec "$@" 1>&{OUT} 2>&{ERR} {OUT}>&- {ERR}>&-'
_QUICK: Final = 20  # seconds for a program to say its version


class Nsys(NamedTuple):
    """An Nsight Systems: its program, its version, and why it cannot be used (empty if it can)."""

    program: Path
    version: str
    problem: str


def find(root: Path = Path("/")) -> list[Nsys]:
    """Every Nsight Systems of this machine, usable ones first, then the newest.

    Args:
        root: where the usual places begin.
    """
    found = [_looked_at(path) for path in programs(root)]
    return sorted(found, key=lambda n: (not n.problem, numbers(n.version)), reverse=True)


def usable(root: Path = Path("/")) -> Nsys:
    """The Nsight Systems to use.

    Raises:
        TprofError: there is none, or none works.
    """
    found = find(root)
    if not found:
        raise TprofError(
            f"Nsight Systems is not on this machine (PATH, CUDA, /opt/nvidia): {GET_IT}; or leave out --nsys"
        )
    if found[0].problem:
        raise TprofError(f"{found[0].program}: {found[0].problem}")
    return found[0]


def _looked_at(program: Path) -> Nsys:
    code, said = _run(program, "--version", seconds=_QUICK)
    match = re.search(r"\b20\d\d[.\d]+", said)
    if code or not match:
        return Nsys(program, "", f"does not tell its version ({said[-500:] or f'status {code}'}); reinstall it")
    return Nsys(program, match[0].strip("."), _importer_problem(program))


def _importer_problem(program: Path) -> str:
    """Why the report would stay unfinished: the program that finishes it misses libraries."""
    importer = next(iter(sorted(program.resolve().parents[1].glob("*/QdstrmImporter"))), None)
    if importer is None:
        return ""  # not where it usually is: nsys may know
    code, said = _run(importer, "--version", seconds=_QUICK)
    missing = re.search(r"(\S+\.so[.\d]*): cannot open", said)
    return f"cannot write reports without {missing[1]}: {LIBRARIES}" if code and missing else ""


def _run(*command: str | Path, seconds: float | None = None) -> tuple[int, str]:
    """Status of a program, and what it says as one line."""
    try:
        ran = subprocess.run(  # noqa: S603 - a program found in PATH or NVIDIA's own folders
            command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return ran.returncode, " ".join((ran.stdout + " " + ran.stderr).split())


def profile(nsys: Nsys, directory: Path, command: Sequence[str]) -> list[str]:
    """The command within `nsys profile`, by the flags that this version knows.

    It must be run with OUT and ERR open. The pid of the command itself is written to `target` in the directory.
    """
    _, help_text = _run(nsys.program, "profile", "--help")
    flags = [flag for flag in (*FLAGS, f"--session-new={_session()}") if flag.partition("=")[0] in help_text]
    output = ["--output", str(directory / "nsight")]
    wrapped = ["/bin/sh", "-c", _WRAPPER, str(directory / "target"), *command]
    return [str(nsys.program), "profile", *flags, *output, *wrapped]


def _session() -> str:
    """How nsys calls what we start."""
    return f"tprof-{os.getpid()}"


def end_agents() -> None:
    """End what nsys left running of this recording: an agent that outlives it holds the command's stdout open."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"--start-agent" in words and f"--session-name={_session()}".encode() in words:
                os.kill(int(process.name), signal.SIGKILL)
        except OSError:  # it has just ended, or is another user's
            continue


def target(directory: Path) -> int | None:
    """Pid of the command within `nsys profile`; None as long as it has not begun."""
    try:
        return int((directory / "target").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def running(directory: Path) -> int | None:
    """Pid of the command within `nsys profile`; None before it has begun and after it has ended."""
    pid = target(directory)
    return pid if pid is not None and Path(f"/proc/{pid}").exists() else None


class Finishing:
    """Says once that nsys goes on although the command has ended: it hangs, or its report is large.

    Args:
        directory: run directory.
        say: takes the sentence.
        patience: seconds that finishing may take unmentioned.
    """

    def __init__(self, directory: Path, say: Callable[[str], None], patience: float = 30.0) -> None:
        self._directory, self._say, self._patience = directory, say, patience
        self._ended: float | None = None
        self._said = False

    def __call__(self) -> None:
        """Look; to be called about once a second."""
        if self._said or target(self._directory) is None or running(self._directory) is not None:
            return
        self._ended = self._ended or time.monotonic()
        if time.monotonic() - self._ended >= self._patience:
            self._said = True
            self._say(
                f"the command ended {self._patience:.0f} s ago and Nsight Systems is still at it: its report is large, "
                "or a process that the command left running holds it; Ctrl-C ends it, and keeps what tprof recorded"
            )


def export(nsys: Nsys, directory: Path) -> str | None:
    """Export the report to `nsight.sqlite`, beside it.

    Returns:
        What went wrong, as a note; None if nothing did.
    """
    end_agents()
    if target(directory) is None:
        return f"Nsight Systems did not start the command; {directory / 'nsight.log'} has its output"
    (directory / "target").unlink()
    report, exported = directory / "nsight.nsys-rep", directory / "nsight.sqlite"
    log = directory / "nsight.log"
    if not report.exists():
        unfinished = next(directory.glob("nsight*.qdstrm"), None)
        left = f"only the unfinished {unfinished.name}" if unfinished else "nothing"
        return f"Nsight Systems left {left}; {log} has its output"
    to_sqlite = ("export", "--type", "sqlite", "--force-overwrite", "true", "--output")
    code, said = _run(nsys.program, *to_sqlite, exported, report)
    for file in directory.glob("nsight.*"):
        file.chmod(0o600)  # a capture holds the environment and the process list
    if code or not exported.exists():
        return f"{report} could not be exported to SQLite ({said[-300:] or f'status {code}'}); {log} has what nsys said"
    return None


def ranges_arrived(exported: Path) -> bool:
    """Whether the export holds tprof's own NVTX ranges: every recording begins with one that tells the time."""
    queries = (
        "SELECT 1 FROM StringIds WHERE value LIKE 'tprof::clock:%' LIMIT 1",
        "SELECT 1 FROM NVTX_EVENTS WHERE text LIKE 'tprof::clock:%' LIMIT 1",
    )
    with closing(sqlite3.connect(f"{exported.absolute().as_uri()}?mode=ro", uri=True)) as database:
        return any(_any_row(database, query) for query in queries)


def _any_row(database: sqlite3.Connection, query: str) -> bool:
    try:
        return database.execute(query).fetchone() is not None
    except sqlite3.DatabaseError:  # this export has no such table
        return False


def streams(directory: Path) -> list[tuple[int | str, ...]]:
    """File actions of `posix_spawn` that give `profile` its OUT and ERR, and what nsys says to `nsight.log`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    return [
        (os.POSIX_SPAWN_DUP2, 1, OUT),
        (os.POSIX_SPAWN_DUP2, 2, ERR),
        (os.POSIX_SPAWN_OPEN, 1, str(directory / "nsight.log"), flags, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
