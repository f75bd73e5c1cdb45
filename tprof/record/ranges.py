"""What users say of their own program: requests, named stretches, and that start-up is over."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar
from weakref import WeakValueDictionary

from tprof.record import clock, guard, listen, spans, startup
from tprof.record import session as live
from tprof.record.spans import Span
from tprof.record.threads import local

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextvars import ContextVar, Token
    from types import TracebackType

    from tprof.record.session import Session

P = ParamSpec("P")
T = TypeVar("T")


class _Range:
    """A range that may cross threads and await: it is kept in context variables, never on a thread's stack."""

    kind = "range"

    def __init__(self, name: str, attrs: dict[str, Any]) -> None:
        self.name, self.attrs = name, attrs
        self._span: Span | None = None
        self._nvtx: Any = None
        self._session: Session | None = None

    @property
    def span_id(self) -> int:
        """Id of the range in the recording; 0 while it is closed or nothing is recorded."""
        return self._span.id if self._span else 0

    def _open(self) -> None:
        session = live.active
        if session is None or self._span is not None:
            return
        span = Span(session, local.state, self.kind, self.name)
        session.journal.add(spans.begin_record(span, self.attrs))
        self._span, self._session = span, session
        _open_ranges[span.id] = self
        self._nvtx = session.nvtx.start(self.kind, f"{self.kind}:{self.name}", span.id)
        span.said = self.attrs
        listen.tell("begun", span)

    def begin_again(self, tid: int) -> dict[str, Any]:
        """The begin line of a range that a forked child inherited."""
        if self._span is None:
            raise RuntimeError("the range is closed")
        record = spans.begin_record(self._span, {**self.attrs, "inherited": True})
        return {**record, "parent": 0, "request": 0, "tid": tid}

    def _close(self, error: BaseException | None) -> None:
        span, self._span = self._span, None
        if span is None or self._session is None:
            return
        session = self._session.successor or self._session
        if session is not self._session and span.id not in session.inherited:
            return  # the parent's, seen from a forked child
        session.nvtx.stop(self._nvtx)
        text = f"{type(error).__name__}: {error}"[:300] if error is not None else ""
        t_ns, attrs = clock.now(), {"tid": local.state.tid}
        session.journal.add(spans.end_record(span, t_ns, attrs, text))
        listen.tell("ended", span, t_ns, attrs, text)


_open_ranges: WeakValueDictionary[int, _Range] = WeakValueDictionary()


class annotate(_Range):  # noqa: N801 - reads as a word: `with tprof.annotate("prefill"):`, `@tprof.annotate("load")`
    """Name a stretch of the program. A context manager, and a decorator of functions and coroutines.

    Args:
        name: from a bounded set: never with a counter or an address in it.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, {})
        self._token: Token[int] | None = None

    def __enter__(self) -> Self:
        guard.call("range", self._open)
        self._token = spans.range_id.set(self.span_id or spans.range_id.get())
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        _reset(spans.range_id, self._token)
        guard.call("range", self._close, error)

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """Annotate every call of `function`."""
        return decorate(function, lambda: annotate(self.name))


class request(_Range):  # noqa: N801 - reads as a word: `with tprof.request("generate", id="r1"):`
    """A unit of latency: what runs for it is recorded as its own, across await and, by `serve`, across threads.

    Use it as a context manager or decorator, or let a server `start()` it, `serve()` it wherever work is done for it
    (other threads, other tasks), and `end()` it.

    Args:
        name: kind of request, from a bounded set.
        id: which one it is; text that joins its parts.
    """

    kind = "request"

    def __init__(self, name: str, id: str | int | None = None) -> None:  # noqa: A002 - the word for it
        super().__init__(name, {"request_id": None if id is None else str(id)})
        self._serving: list[serve] = []

    def start(self) -> Self:
        """The request has arrived; nothing is recorded as its own before `serve`."""
        guard.call("request", self._open)
        return self

    def end(self, error: BaseException | None = None) -> None:
        """The request is answered, or failed with `error`."""
        guard.call("request", self._close, error)

    def serve(self) -> serve:
        """A context manager: what this thread or task does within is done for the request."""
        return serve(self)

    def __enter__(self) -> Self:
        self.start()
        self._serving.append(self.serve())
        self._serving[-1].__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self._serving:
            self._serving.pop().__exit__(kind, error, None)
        self.end(error)

    def __call__(self, function: Callable[P, T]) -> Callable[P, T]:
        """A request per call of `function`."""
        return decorate(function, lambda: request(self.name, self.attrs["request_id"]))


class serve(_Range):  # noqa: N801 - a context manager, as the others
    """A stretch in which a thread or task works for a request; made by `request.serve`."""

    kind = "serve"

    def __init__(self, served: request) -> None:
        super().__init__(served.name, {"request_id": served.attrs["request_id"]})
        self._served = served
        self._token: Token[int] | None = None

    def __enter__(self) -> request:
        self._token = spans.request_id.set(self._served.span_id)
        guard.call("request", self._open)
        return self._served

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        guard.call("request", self._close, error)
        _reset(spans.request_id, self._token)


def inherit(session: Session) -> None:
    """In a forked child: it goes on within the request and the range that the parent was in when it forked."""
    for span_id in {spans.request_id.get(), spans.range_id.get()}:
        found = _open_ranges.get(span_id)
        if found is not None:
            session.inherited.add(span_id)
            session.journal.add(found.begin_again(local.state.tid))


def ready() -> None:
    """Mark the end of start-up: from here on nothing should compile."""
    session, t_ns = live.active, clock.now()
    listen.mark_ready(t_ns)
    if session is not None and session.written:
        session.journal.add({"type": "mark", "name": "ready", "tid": local.state.tid, "t_ns": t_ns})
        guard.call("startup", startup.write, session)


def _reset(variable: ContextVar[int], token: Token[int] | None) -> None:
    if token is not None:
        try:
            variable.reset(token)
        except (RuntimeError, ValueError):  # left in another context than it was entered in, which has its own value
            return


def decorate(function: Callable[P, T], make: Callable[[], Any]) -> Callable[P, T]:
    """`function`, which may be a coroutine function, with every call within what `make` gives."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
            with make():
                return await function(*args, **kwargs)

        return awaited  # type: ignore[return-value]

    @functools.wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> T:
        with make():
            return function(*args, **kwargs)

    return called
