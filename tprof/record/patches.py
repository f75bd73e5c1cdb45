"""Wraps of foreign classes that can be taken off again, also when somebody wrapped over them meanwhile."""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any, Final

Wrap = Callable[[Any], Callable[..., Any]]  # (what was there) -> what takes its place


class PatchSet:
    """Wraps of methods, on the class that defines them and never on instances."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._mine: dict[tuple[Any, str], tuple[Any, Any]] = {}  # (owner, name) -> (what was there, our wrapper)

    def wrap(self, owner: Any, name: str, wrap: Wrap) -> bool:
        """Wrap `owner.name`; False if `owner` itself does not define it, or if it is wrapped already."""
        with self._lock:
            current = vars(owner).get(name)
            if current is None or self._still_on(owner, name, current):
                return False
            plain = current.__func__ if isinstance(current, staticmethod) else current
            wrapper: Any = functools.update_wrapper(wrap(plain), plain)
            wrapper.__tprof__ = True
            wrapper = wrapper if plain is current else staticmethod(wrapper)
            setattr(owner, name, wrapper)
            self._mine[owner, name] = (current, wrapper)
            return True

    def _still_on(self, owner: Any, name: str, current: Any) -> bool:
        """Ours is there, or beneath a foreign wrap that kept us from taking it off."""
        original, wrapper = self._mine.get((owner, name), (None, None))
        return wrapper is not None and (current is wrapper or current is not original)

    def restore(self) -> list[str]:
        """Put back what was there wherever our wrapper is still on top.

        Returns:
            The names that somebody wrapped since: theirs stays, with our wrapper beneath it passing through.
        """
        with self._lock:
            for (owner, name), (original, wrapper) in reversed(list(self._mine.items())):
                if vars(owner).get(name) is wrapper:
                    setattr(owner, name, original)
                    del self._mine[owner, name]
                elif vars(owner).get(name) is original:
                    del self._mine[owner, name]
            return [f"{owner.__name__}.{name}" for owner, name in self._mine]


patches: Final = PatchSet()


class Slot:
    """A launch-hook slot of Triton, whatever its kind: a chain (3.5 on), or room for one callable.

    Args:
        owner: what has the slot.
        name: the slot.
    """

    def __init__(self, owner: Any, name: str) -> None:
        self._owner, self._name = owner, name
        self._before: Any = None
        self._mine: Any = None
        self._lock, self._hiding, self._place = threading.Lock(), 0, -1

    @property
    def current(self) -> Any:
        """What is in the slot now."""
        return getattr(self._owner, self._name)

    def add(self, hook: Callable[..., Any]) -> None:
        """Put `hook` into the slot, together with what is there."""
        current = self.current
        if hasattr(current, "calls"):
            current.add(hook)
            return
        self._before, self._mine = current, hook if current is None else _chain(hook, current)
        setattr(self._owner, self._name, self._value(self._mine))

    def remove(self, hook: Callable[..., Any]) -> None:
        """Take `hook` out, unless somebody else has replaced the slot's content."""
        current = self.current
        if hasattr(current, "calls"):
            current.remove(hook)
        elif self._mine is not None and current is self._mine:
            setattr(self._owner, self._name, self._value(self._before))
        self._mine, self._place = None, -1

    @contextlib.contextmanager
    def hidden(self, hook: Callable[..., Any]) -> Iterator[None]:
        """For a block: the slot as it is without `hook`, for those who look whether anybody listens.

        A launch that ends on another thread meanwhile is recorded as one whose end was not seen.
        """
        with self._lock:
            self._hiding += 1
            if self._hiding == 1:
                self._hide(hook)
        try:
            yield
        finally:
            with self._lock:
                self._hiding -= 1
                if self._hiding == 0:
                    self._show(hook)

    def _hide(self, hook: Callable[..., Any]) -> None:
        current = self.current
        if hasattr(current, "calls"):
            if hook in current.calls:
                self._place = current.calls.index(hook)
                del current.calls[self._place]
        elif self._mine is not None and current is self._mine:
            self._place = 0
            setattr(self._owner, self._name, self._value(self._before))

    def _show(self, hook: Callable[..., Any]) -> None:
        if self._place < 0:  # it was not there, or the recording ended meanwhile
            return
        current, place, self._place = self.current, self._place, -1
        if hasattr(current, "calls"):
            current.calls.insert(place, hook)
        elif current is self._before:
            setattr(self._owner, self._name, self._value(self._mine))

    def _value(self, hook: Any) -> Any:
        return staticmethod(hook) if isinstance(self._owner, type) and hook is not None else hook


def _chain(first: Callable[..., Any], then: Callable[..., Any]) -> Callable[..., Any]:
    def both(*args: Any, **kwargs: Any) -> None:
        first(*args, **kwargs)
        then(*args, **kwargs)

    return both
