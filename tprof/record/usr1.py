"""SIGUSR1 to a recorded process: it says on stderr what it is compiling or tuning.

The main thread may be stuck in a compiler, where Python runs no signal handler. So the signal is taken by faulthandler,
whose handler is C and only writes into a pipe (Python offers no other); the thread that writes the journal looks there.
"""

from __future__ import annotations

import faulthandler
import os
import signal
from pathlib import Path
from typing import Final

from tprof.record import live, live_text

_PIPE_BYTES: Final = 1 << 16


class Listener:
    """Takes SIGUSR1 if nobody else does.

    Args:
        directory: run directory.
        stem: of the process in it.
        parents: in a forked child, the listener of the parent, whose place this one takes.
    """

    def __init__(self, directory: Path, stem: str, parents: Listener | None = None) -> None:
        self._directory, self._stem = directory, stem
        self._pipe: tuple[int, int] | None = None
        inherited = parents._pipe if parents is not None else None
        if inherited or is_default():
            self._pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            faulthandler.register(signal.SIGUSR1, file=self._pipe[1], all_threads=False)
        for end in inherited or ():
            os.close(end)

    def poll(self) -> None:
        """Answer if the signal came since the last time; everything that happened is in the journal already."""
        if self._pipe is None:
            return
        try:
            asked = os.read(self._pipe[0], _PIPE_BYTES)
        except BlockingIOError:
            return
        if asked:
            text = "\n".join(
                live_text.lines(live.Watch(self._directory, self._stem).look(), f"tprof, pid {os.getpid()}")
            )
            os.write(2, text.encode(errors="replace") + b"\n")

    def close(self) -> None:
        """Give the signal back, unless the program has taken it meanwhile."""
        if self._pipe is None:
            return
        if signal.getsignal(signal.SIGUSR1) is signal.SIG_DFL:
            faulthandler.unregister(signal.SIGUSR1)
            for end in self._pipe:
                os.close(end)
        self._pipe = None


def is_default() -> bool:
    """Whether SIGUSR1 is neither caught nor ignored: by the kernel's word, as handlers in C are unknown to Python."""
    masks = {}
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name in {"SigCgt", "SigIgn"}:
            masks[name] = int(value, 16)
    bit = 1 << (signal.SIGUSR1 - 1)
    return len(masks) == 2 and not any(mask & bit for mask in masks.values())
