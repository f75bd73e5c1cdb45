"""Those who hear of cold events while they happen: guards, budgets, metrics; with a recording, and without one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tprof.record import guard

if TYPE_CHECKING:
    from tprof.record.spans import Span
    from tprof.record.threads import ThreadState

listeners: Final[list[Listener]] = []
at_launch: Final[list[Listener]] = []  # those that also hear of every launch
ready_ns = 0  # when the program said that its start-up is over; 0 until then


class Listener:
    """Hears of spans, on the thread that does the work. A method that fails is switched off (`guard.call`)."""

    hears_launches = False

    def begun(self, span: Span) -> None:
        """A span is open; its work has not begun."""

    def ended(self, span: Span, t_ns: int, attrs: dict[str, Any], error: str) -> None:
        """A span is over, and no longer on its thread's stack; `attrs` are those of its end."""

    def launching(self, state: ThreadState, kernel: Any, args: tuple[Any, ...]) -> None:
        """A loaded CompiledKernel is about to be launched; only heard with `hears_launches`."""

    def ready(self, t_ns: int) -> None:
        """The program says that its start-up is over."""


def add(listener: Listener) -> None:
    """From now on `listener` hears."""
    listeners.append(listener)
    if listener.hears_launches:
        at_launch.append(listener)


def remove(listener: Listener) -> None:
    """`listener` hears no more; nothing happens if it did not."""
    for those in (listeners, at_launch):
        if listener in those:
            those.remove(listener)


def tell(method: str, *said: Any) -> None:
    """Call a method of every listener."""
    for listener in tuple(listeners):
        guard.call(f"{type(listener).__name__}.{method}", getattr(listener, method), *said)


def launching(state: ThreadState, kernel: Any, args: tuple[Any, ...]) -> None:
    """Tell those who hear of launches."""
    for listener in tuple(at_launch):
        guard.call(f"{type(listener).__name__}.launching", listener.launching, state, kernel, args)


def mark_ready(t_ns: int) -> None:
    """The program is ready; the first time counts."""
    global ready_ns  # noqa: PLW0603 - a process starts up once
    ready_ns = ready_ns or t_ns
    tell("ready", ready_ns)
