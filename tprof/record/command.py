"""Running a command whose Python processes are recorded: their environment; signals and exit codes passed through."""

from __future__ import annotations

import os
import re
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tprof.errors import TprofError
from tprof.record.bootstrap import FOLDER, VARIABLE
from tprof.record.settings import TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    FileActions = Sequence[tuple[Any, ...]]  # of `posix_spawn`

NOT_EXECUTABLE, NOT_FOUND = 126, 127  # as shells say it
# What may be sent to `tprof record` and is meant for the command. SIGTSTP and SIGCONT stop and wake both as they are.
PASSED_ON: Final = (
    signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGWINCH,
)  # fmt: skip
_PYTHON: Final = re.compile(r"(python|pypy)[\d.]*t?")
_WITH_VALUE: Final = "cmWX"  # flags of Python that take what follows; -c and -m end the flags


def environment(directory: Path, base: Mapping[str, str], **settings: str) -> dict[str, str]:
    """The environment in which every Python process records into `directory`.

    Args:
        directory: run directory, absolute.
        base: environment to begin from.
        settings: of the recorder, by the names of `trace`'s arguments.
    """
    inherited = base.get("PYTHONPATH")  # one that is empty must not become a path with an empty entry
    return {
        **base,
        "PYTHONPATH": os.pathsep.join([str(FOLDER), *([inherited] if inherited else [])]),
        VARIABLE: str(directory),
        TABLE["out"].variable: str(directory),
        **{TABLE[name].variable: value for name, value in settings.items()},
    }


def run(
    command: Sequence[str],
    env: Mapping[str, str],
    target: Callable[[], int | None] = lambda: None,
    streams: FileActions = (),
    tick: Callable[[], None] = lambda: None,
) -> int:
    """Run a command to its end; signals sent to this process go to it.

    Args:
        command: program and arguments.
        env: its environment.
        target: pid that signals are meant for, where that is not the program's own; None if not known yet.
        streams: file actions of `posix_spawn`, where it is not to have our stdout and stderr.
        tick: called about once a second while it runs.

    Returns:
        Its exit code; 128 + n if signal n ended it.

    Raises:
        TprofError: it cannot be started; the exit code is that of a shell.
    """
    watched = {*PASSED_ON, signal.SIGCHLD}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        pid = _start(command, env, before, streams)
        return _wait(pid, target, tick)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _start(command: Sequence[str], env: Mapping[str, str], mask: Any, streams: FileActions) -> int:
    try:
        return os.posix_spawnp(command[0], list(command), env, file_actions=streams, setsigmask=mask)
    except FileNotFoundError:
        raise TprofError(f"{command[0]}: not found; check its name and PATH", exit_code=NOT_FOUND) from None
    except OSError as error:
        problem = f"{command[0]}: cannot be run ({error.strerror}); check its permissions"
        raise TprofError(problem, exit_code=NOT_EXECUTABLE) from None


def _wait(pid: int, target: Callable[[], int | None], tick: Callable[[], None]) -> int:
    while True:
        tick()
        # SIGCHLD can be merged or come from elsewhere: look first, then wait for the next signal, at most a second
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        got = signal.sigtimedwait({*PASSED_ON, signal.SIGCHLD}, 1.0)
        # What the terminal sends (si_code > 0: from the kernel) goes to the whole foreground group already.
        if got is not None and got.si_signo != signal.SIGCHLD and got.si_code <= 0:
            _send(target() or pid, got.si_signo)


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:  # it has just ended
        return


def blind_flags(command: Sequence[str]) -> str:
    """The flags by which the command tells Python to ignore PYTHONPATH or sitecustomize: -I, -E, -S; empty if none.

    Looks at `python -I …` and at the first line of a script.
    """
    words = list(command)
    if words and not _PYTHON.fullmatch(Path(words[0]).name):
        words = _shebang(words[0])
        if words and Path(words[0]).name == "env":
            words = [word for word in words[1:] if word != "-S"]
    if not words or not _PYTHON.fullmatch(Path(words[0]).name):
        return ""
    return "".join(flag for flag in "IES" if flag in _flags(words[1:]))


def _flags(words: Sequence[str]) -> str:
    """The single-letter flags before Python's program."""
    found, rest = "", iter(words)
    for word in rest:
        if not word.startswith("-") or word.startswith("--"):
            break
        letters = word[1:]
        at = next((i for i, letter in enumerate(letters) if letter in _WITH_VALUE), None)
        found += letters if at is None else letters[:at]
        if at is not None and letters[at] in "cm":
            break
        if at is not None and at == len(letters) - 1:
            next(rest, None)
    return found


def _shebang(program: str) -> list[str]:
    """The first line of a script, as words."""
    path = shutil.which(program)
    try:
        with open(path or program, "rb") as file:  # noqa: PTH123 - a name of PATH
            line = file.readline(512)
    except OSError:
        return []
    return line[2:].decode(errors="replace").split() if line.startswith(b"#!") else []
