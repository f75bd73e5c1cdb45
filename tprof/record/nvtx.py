"""NVTX ranges in domain `tprof`: one category per phase, names from a bounded set, an id as payload."""

from __future__ import annotations

from typing import Any, Final

from tprof.record import guard, nvtx_old

MAX_NAMES: Final = 4096  # NVTX keeps every name for good: past this many, ranges are named by their category alone


class Ranges:
    """Pushes and pops ranges; does nothing where no tool listens or nvtx is not installed.

    Whether a tool listens is decided once: NVTX finds its tool when the first domain is made.
    """

    def __init__(self, *, wanted: bool) -> None:
        self.domain: Any = guard.call("nvtx", _domain) if wanted else None
        self._names: set[str] = set()

    def attributes(self, category: str, name: str, payload: int) -> Any:
        """What `push_range` of the domain takes, to be built once per launch key; None where nobody listens."""
        if self.domain is None:
            return None
        return guard.call("nvtx", self._attributes, category, name, payload)

    def _attributes(self, category: str, name: str, payload: int) -> Any:
        if name not in self._names:
            if len(self._names) >= MAX_NAMES:
                name = category
            self._names.add(name)
        return self.domain.get_event_attributes(message=name, category=category, payload=payload)

    def push(self, category: str, name: str, payload: int) -> bool:
        """Open a range on this thread; True if `pop` must follow."""
        attributes = self.attributes(category, name, payload)
        if attributes is None:
            return False
        self.domain.push_range(attributes)
        return True

    def pop(self) -> None:
        """Close the innermost range of this thread."""
        self.domain.pop_range()

    def start(self, category: str, name: str, payload: int) -> Any:
        """Open a range that may end on another thread; the handle for `stop`, or None."""
        attributes = self.attributes(category, name, payload)
        return None if attributes is None else self.domain.start_range(attributes)

    def stop(self, handle: Any) -> None:
        """Close a range opened by `start`."""
        if handle is not None:
            self.domain.end_range(handle)

    def beacon(self, name: str) -> None:
        """A range whose name says what time it is: the one kind of name that is never repeated, once a second."""
        if self.domain is not None:
            self.domain.push_range(self.domain.get_event_attributes(message=name, category="clock"))
            self.domain.pop_range()


def _domain() -> Any:
    try:
        import nvtx  # noqa: PLC0415 - importing is what enables the tool's injection; not before a trace wants it
    except ImportError:
        return None
    domain = nvtx.get_domain("tprof") if hasattr(nvtx, "get_domain") else None
    if not hasattr(domain, "push_range"):
        return nvtx_old.domain(nvtx)
    return None if type(domain).__name__ == "DummyDomain" else domain
