"""Errors that a user reads: what happened, where, what to do. `cli` prints the message and returns the exit code."""

from __future__ import annotations

DONE, FAILED, USAGE, GATE, CANNOT_JUDGE = 0, 1, 2, 3, 4


class TprofError(Exception):
    """Something a user can act on, in one sentence.

    Args:
        message: what, where, and what to do about it.
        exit_code: what the command line returns (DESIGN 5): 1 failed, 2 usage, 3 a gate tripped, 4 cannot judge.
    """

    def __init__(self, message: str, *, exit_code: int = FAILED) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class SourceError(TprofError):
    """A source that cannot be read at all. The message begins with its path."""

    def __init__(self, path: object, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path


class UsageError(TprofError):
    """The caller asked for something that does not exist or cannot be."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=USAGE)
