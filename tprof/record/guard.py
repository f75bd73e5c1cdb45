"""The one place that may catch everything: a failing hook is switched off and named once; the workload goes on."""

from __future__ import annotations

import contextlib
import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, ParamSpec, TypeVar

from tprof.errors import GATE, TprofError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

P = ParamSpec("P")
T = TypeVar("T")

# Whatever goes wrong in our own code, or in what it asks of foreign objects, must not reach the workload.
FAILURES: Final = Exception


class RefusedError(TprofError):
    """Something cold that the user's own `tprof.guard("raise")` does not allow: it is raised into the workload."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=GATE)


log: Final = logging.getLogger("tprof")
wanted: Final[ContextVar[bool]] = ContextVar("tprof_wanted", default=False)
_broken: dict[str, str] = {}
_listener: Callable[[str, str], None] | None = None


def call(hook: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
    """Call `function` on behalf of `hook`; None where it fails or the hook was switched off before."""
    if hook in _broken:
        return None
    try:
        return function(*args, **kwargs)
    except RefusedError:
        raise
    except FAILURES as error:
        switch_off(hook, error)
        return None


@contextlib.contextmanager
def asked_for() -> Iterator[None]:
    """What compiles or tunes within is meant to, also after ready: no `tprof.guard` minds it."""
    token = wanted.set(True)
    try:
        yield
    finally:
        wanted.reset(token)


def switch_off(hook: str, error: BaseException) -> None:
    """Disable `hook` for the rest of the recording and say so once."""
    if hook not in _broken:
        _broken[hook] = f"{type(error).__name__}: {error}"[:300]
        warn("hook-disabled", f"the hook {hook!r} failed and is off from here on ({_broken[hook]})")


def warn(code: str, message: str) -> None:
    """Tell the user on the logger `tprof`, and everyone who listens (the journal)."""
    log.warning("tprof: %s", message)
    if _listener is not None:
        _listener(code, message)


def listen(listener: Callable[[str, str], None] | None) -> None:
    """Make `listener(code, message)` the only one that hears of warnings; None for nobody. Hooks start afresh."""
    global _listener  # noqa: PLW0603 - one recording per process
    _broken.clear()
    _listener = listener
