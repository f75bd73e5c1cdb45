"""SIGUSR1 to a recorded process: it says on stderr what it is compiling or tuning.

The main thread may be stuck in a compiler, where Python runs no signal handler. So the signal is taken by faulthandler,
whose handler is C and only writes into a pipe (Python offers no other); the thread that writes the journal looks there.
Triton's LLVM takes the signal, too, when it first compiles, and does nothing with it: it is taken back from there.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
from typing import TYPE_CHECKING, Final

from tprof.record import live, live_text

if TYPE_CHECKING:
    from pathlib import Path

_PIPE_BYTES: Final = 1 << 16
_ACTION_BYTES: Final = 256  # more than `struct sigaction` of glibc, which begins with the handler's address
_DEFAULT: Final = 0
_LLVM: Final = b"libtriton"  # its LLVM is linked into it


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
        self._mine = self._displaced = b""
        inherited = parents._pipe if parents is not None else None  # noqa: SLF001 - its own kind
        if inherited or _free(_action()):
            self._displaced = b"" if inherited else _action()
            self._pipe = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
            faulthandler.unregister(signal.SIGUSR1)  # of the parent
            faulthandler.register(signal.SIGUSR1, file=self._pipe[1], all_threads=False)
            self._mine = _action()
        for end in inherited or ():
            os.close(end)

    def poll(self) -> None:
        """Answer if the signal came since the last time; everything that happened is in the journal already."""
        if self._pipe is None:
            return
        current = _action()
        if _handler(current) != _handler(self._mine) and _is_llvms(current):
            self._displaced = current
            _set_action(self._mine)
        if _read(self._pipe[0]):
            look = live.Watch(self._directory, self._stem).look()
            text = "\n".join(live_text.lines(look, f"tprof, pid {os.getpid()}"))
            os.write(2, text.encode(errors="replace") + b"\n")

    def close(self) -> None:
        """Give the signal back, unless the program has taken it meanwhile."""
        if self._pipe is None:
            return
        if _handler(_action()) == _handler(self._mine):
            faulthandler.unregister(signal.SIGUSR1)
            if _is_llvms(self._displaced):
                _set_action(self._displaced)
            for end in self._pipe:
                os.close(end)
        self._pipe = None


def _read(pipe: int) -> bytes:
    try:
        return os.read(pipe, _PIPE_BYTES)
    except BlockingIOError:
        return b""


# ---- what the kernel says: handlers in C are unknown to Python


class _Symbol(ctypes.Structure):
    _fields_ = (
        ("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("name", ctypes.c_char_p), ("address", ctypes.c_void_p),
    )  # fmt: skip


def _action() -> bytes:
    """The `struct sigaction` of SIGUSR1."""
    action = ctypes.create_string_buffer(_ACTION_BYTES)
    ctypes.CDLL(None).sigaction(int(signal.SIGUSR1), None, action)
    return action.raw


def _set_action(action: bytes) -> None:
    ctypes.CDLL(None).sigaction(int(signal.SIGUSR1), action, None)


def _handler(action: bytes) -> int:
    return int.from_bytes(action[: ctypes.sizeof(ctypes.c_void_p)], "little")


def _free(action: bytes) -> bool:
    """Whether nobody takes the signal, or nobody but LLVM."""
    return _handler(action) == _DEFAULT or _is_llvms(action)


def _is_llvms(action: bytes) -> bool:
    symbol = _Symbol()
    found = _handler(action) > 1 and ctypes.CDLL(None).dladdr(ctypes.c_void_p(_handler(action)), ctypes.byref(symbol))
    return bool(found) and _LLVM in os.path.basename(symbol.file or b"")  # noqa: PTH119 - bytes
