"""Cold spans: begun on disk before the work starts, ended when it is over, nested per thread."""

from __future__ import annotations

from collections import Counter
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Self

from tprof.record import guard, listen
from tprof.record.clock import new_id, now
from tprof.record.threads import ThreadState, local

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from tprof.record.session import Session

# Kind of span -> phase (DESIGN 4). What a kind means is written in docs/run-directory.md.
PHASES: Final = {
    "jit": "compile", "stage": "compile", "cache": "cache", "launcher_build": "launcher_build", "load": "module_load",
    "graph_compile": "graph_compile", "compile_wait": "compile", "graph_capture": "graph_capture",
    "autotune": "autotune", "prune": "autotune", "candidate": "autotune", "autotune_cache": "cache",
    "request": None, "serve": None, "range": None,
}  # fmt: skip
AFTER_SEARCH: Final = ("jit", "load")  # beneath a search they belong to a candidate; else it is over
NAMED: Final = ("jit", "load", "autotune", "candidate")  # they bear the name of the function that they are about
MAX_TEXT: Final = 4000  # of an error, as a compiler's message can be a whole program

request_id: ContextVar[int] = ContextVar("tprof_request", default=0)  # span id of the request being served
range_id: ContextVar[int] = ContextVar("tprof_range", default=0)  # span id of the innermost user range


class Span:
    """An open span."""

    __slots__ = (
        "attrs", "began_ns", "error", "facts", "handled", "hit", "id", "kind", "last_ns", "name", "open_ended",
        "own_ns", "parent", "phases", "pushed", "said", "session", "state",
    )  # fmt: skip

    def __init__(self, session: Session, state: ThreadState, kind: str, name: str) -> None:
        self.session, self.state, self.kind, self.name, self.id = session, state, kind, name, new_id()
        self.parent = state.stack[-1].id if state.stack else range_id.get() or request_id.get()
        self.began_ns = 0  # when the work began: after the begin line was on disk
        self.error = ""  # of a child: Triton swallows what a candidate fails with
        self.last_ns = 0  # when the last child ended
        self.pushed = False
        self.open_ended = False  # nobody is sure to close it: a failing child does, or the next span of its kind
        self.attrs: dict[str, Any] = {}  # of the end line of an open-ended span
        self.hit: bool | None = None  # of the disk lookup beneath it
        self.handled: BaseException | None = None  # being handled when it began: not what ended it
        self.said: dict[str, Any] = {}  # attributes of the begin line
        self.facts: dict[str, Any] = {}  # of a `jit`: its specialization
        self.own_ns = 0  # once it is over: what no span beneath it accounts for
        self.phases: Counter[str] = Counter()  # ns by phase of all that is over within it, itself included


def begin(session: Session, kind: str, name: str, attrs: dict[str, Any]) -> Span:
    """Open a cold span on this thread; its begin line is on disk when this returns."""
    state: ThreadState = local.state
    session.close_launch(state)
    if kind in AFTER_SEARCH and at_search(state):
        session.close_search(state)
    if state.stack and state.stack[-1].open_ended and state.stack[-1].kind == kind:
        end(state.stack[-1], state.stack[-1].attrs, "left by an exception")
    span = Span(session, state, kind, name)
    session.journal.add_now(begin_record(span, attrs))
    span.pushed = session.nvtx.push(PHASES[kind] or kind, f"{kind}:{name}", span.id)
    state.stack.append(span)
    span.began_ns, span.said = now(), attrs
    try:
        listen.tell("begun", span)
    except guard.RefusedError as refused:
        end(span, {}, refused)
        raise
    return span


def at_search(state: ThreadState) -> bool:
    """Whether the innermost open span of a thread is a search, none of whose own work is open."""
    return bool(state.tuning and state.stack) and state.stack[-1] is state.tuning[-1][1]


def begin_record(span: Span, attrs: dict[str, Any]) -> dict[str, Any]:
    """The begin line of a span, now."""
    record = {
        "type": "begin", "id": span.id, "parent": span.parent, "kind": span.kind, "phase": PHASES[span.kind],
        "name": span.name, "tid": span.state.tid, "request": request_id.get(), "t_ns": now(),
    }  # fmt: skip
    return {**record, "attrs": attrs} if attrs else record


def end(span: Span, attrs: dict[str, Any], error: BaseException | str | None = None, t_ns: int = 0) -> None:
    """Close a span at `t_ns` (default: now), and first whatever an exception left open inside it."""
    t_ns, stack = t_ns or now(), span.state.stack
    if span not in stack:
        return
    while stack[-1] is not span:
        inner = stack[-1]
        _finish(inner, inner.last_ns or t_ns, {}, error or inner.error or "left by an exception")
    _finish(span, t_ns, attrs, error)


def _finish(span: Span, t_ns: int, attrs: dict[str, Any], error: BaseException | str | None) -> None:
    state = span.state
    state.stack.pop()
    if span.pushed:
        span.session.nvtx.pop()
    text = f"{type(error).__name__}: {error}"[:MAX_TEXT] if isinstance(error, BaseException) else error or ""
    _account(span, t_ns)
    if state.stack:
        parent = state.stack[-1]
        parent.phases.update(span.phases)
        parent.last_ns, parent.error = t_ns, parent.error or (f"{span.kind} {span.name}: {text}" if text else "")
    span.session.journal.add(end_record(span, t_ns, attrs, text))
    state.cold, state.cold_name, state.cold_ns = span.id, span.name, t_ns
    listen.tell("ended", span, t_ns, attrs, text)
    if text and state.stack and state.stack[-1].open_ended:
        _finish(state.stack[-1], t_ns, state.stack[-1].attrs, text)


def _account(span: Span, t_ns: int) -> None:
    """What is over within a span, by phase."""
    span.own_ns = max(0, t_ns - span.began_ns - span.phases.total())
    if (phase := phase_of(span)) is not None:
        span.phases[phase] += span.own_ns


def phase_of(span: Span) -> str | None:
    """Phase of a span's own time; of a variant that was found on disk it is `cache`."""
    return "cache" if span.kind == "jit" and span.hit else PHASES[span.kind]


def about(span: Span) -> str:
    """Function that a span, or the nearest around it, is about; else the name of the outermost."""
    around = [span, *(other for other in reversed(span.state.stack) if other is not span)]
    return next((other.name for other in around if other.kind in NAMED), around[-1].name)


def end_record(span: Span, t_ns: int, attrs: dict[str, Any], error: str) -> dict[str, Any]:
    """The end line of a span."""
    record: dict[str, Any] = {"type": "end", "id": span.id, "t_ns": t_ns, "ok": not error}
    if span.began_ns:
        record["began_ns"] = min(span.began_ns, t_ns)
    if error:
        record["error"] = error
    return {**record, "attrs": attrs} if attrs else record


class Cold:
    """A cold span around a call of the workload; nothing that fails in here reaches it.

    Args:
        session: where it is recorded.
        hook: what is switched off should describing it fail.
        kind: one of PHASES.
        describe: gives (name, attributes) when the span begins.
    """

    __slots__ = ("_describe", "_outer", "attrs", "hook", "kind", "session", "span")

    def __init__(
        self, session: Session, hook: str, kind: str, describe: Callable[[], tuple[str, dict[str, Any]]]
    ) -> None:
        self.session, self.hook, self.kind, self._describe, self._outer = session, hook, kind, describe, 0
        self.span: Span | None = None
        self.attrs: dict[str, Any] = {}  # of the end line; fill it before the block is left

    def __enter__(self) -> Self:
        self.span = guard.call(self.hook, self._begin)
        return self

    def _begin(self) -> Span:
        name, attrs = self._describe()
        span = begin(self.session, self.kind, name, attrs)
        if self.kind == "candidate":  # what it launches is launched for it
            self._outer, span.state.candidate = span.state.candidate, span.id
        return span

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if self.span is not None:
            if self.kind == "candidate":
                self.span.state.candidate = self._outer
            guard.call(f"{self.hook}:end", end, self.span, self.attrs, error)

    def report(self, describe: Callable[[], dict[str, Any]]) -> None:
        """Add what is only known when the work is over."""
        if found := guard.call(self.hook, describe):
            self.attrs.update(found)
