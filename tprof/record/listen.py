"""Those who hear of cold events while they happen: guards, budgets, metrics; with a recording, and without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tprof.record import guard

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.record.spans import Span
    from tprof.record.threads import ThreadState

listeners: Final[list[Listener]] = []
at_launch: tuple[tuple[str, Callable[..., None]], ...] = ()  # (name, method) of those who hear of launches now
ready_ns = 0  # when the program said that its start-up is over; 0 until then


class Listener:
    """Hears of spans, on the thread that does the work. A method that fails is switched off (`guard.call`)."""

    def begun(self, span: Span) -> None:
        """A span is open; its work has not begun."""

    def ended(self, span: Span, t_ns: int, attrs: dict[str, Any], error: str) -> None:
        """A span is over, and no longer on its thread's stack; `attrs` are those of its end."""

    def launching(self, state: ThreadState, kernel: Any, args: tuple[Any, ...]) -> None:
        """A loaded CompiledKernel is about to be launched; heard between `hear_launches` and `skip_launches`."""

    def ready(self, t_ns: int) -> None:
        """The program says that its start-up is over."""


def add(listener: Listener) -> None:
    """From now on `listener` hears."""
    listeners.append(listener)


def remove(listener: Listener) -> None:
    """`listener` hears no more; nothing happens if it did not."""
    skip_launches(listener)
    if listener in listeners:
        listeners.remove(listener)


def tell(method: str, *said: Any) -> None:
    """Call a method of every listener."""
    for listener in tuple(listeners):
        guard.call(f"{type(listener).__name__}.{method}", getattr(listener, method), *said)


def launching(state: ThreadState, kernel: Any, args: tuple[Any, ...]) -> None:
    """Tell those who hear of launches."""
    for name, hear in at_launch:
        guard.call(name, hear, state, kernel, args)


def hear_launches(listener: Listener) -> None:
    """`listener` hears of launches, which a warm launch pays for."""
    global at_launch  # noqa: PLW0603 - replaced as a whole: launches walk through it without a lock
    heard = (f"{type(listener).__name__}.launching", listener.launching)
    at_launch = (*(other for other in at_launch if other != heard), heard)


def skip_launches(listener: Listener) -> None:
    """`listener` hears of launches no more."""
    global at_launch  # noqa: PLW0603 - as above
    at_launch = tuple(other for other in at_launch if other[1] != listener.launching)


def mark_ready(t_ns: int) -> None:
    """The program is ready; the first time counts."""
    global ready_ns  # noqa: PLW0603 - a process starts up once
    ready_ns = ready_ns or t_ns
    tell("ready", ready_ns)
