"""After start-up nothing should compile: whatever does is reported, once per key, with its kernel and the reason."""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, get_args

from tprof.errors import UsageError
from tprof.record import api, clock, listen
from tprof.record.guard import RefusedError, wanted, warn
from tprof.variants import REMEMBERED, Flat, flat, nearest, why_new

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from tprof.record.spans import Span

Action = Literal["warn", "raise", "count"]
MAX_KEPT: Final = 1000  # violations that are kept, and functions and keys that are remembered
CURE: Final = "warm it up before tprof.ready() (tprof.warmup), or send such shapes elsewhere (tprof.bucketed)"
WHAT: Final = {"compile": "compiled", "tuning": "tuned", "graph": "compiled as a graph"}


class Violation(NamedTuple):
    """Something cold after start-up.

    Attributes:
        what: compile, tuning, or graph (Dynamo and Inductor).
        kernel: function, or the phase of Dynamo.
        key: what it was done for: the specialization, or the values of the autotune key.
        reason: what is new about it.
        t_ns: when, on the recorder's clock.
    """

    what: str
    kernel: str
    key: str
    reason: str
    t_ns: int

    def __str__(self) -> str:
        return f"{self.kernel} was {WHAT[self.what]} after ready ({self.reason}); {CURE}"


class guard(listen.Listener):  # noqa: N801 - reads as a word: `tprof.guard("warn")`, `with tprof.guard("raise"):`
    """Watch from now on, until `stop()` or the end of a `with` block; with or without a recording.

    A compile is reported as its first stage begins, after the disk cache was asked and had nothing: a variant that is
    found on disk is none. A search is reported as its first candidate begins, and what it compiles is not. Nothing is
    reported before `tprof.ready()`.

    Args:
        after_ready: `warn` on the logger `tprof` and in the recording, `raise` a `tprof.RefusedError` instead of the
            work (graph compiles are only warned about: an exception would break Dynamo's own books), or only `count`.

    Attributes:
        violations: one per key, at most 1000.
        counts: of them, by (what, kernel).

    Raises:
        UsageError: `after_ready` is none of these.
    """

    def __init__(self, after_ready: Action = "warn") -> None:
        if after_ready not in get_args(Action):
            raise UsageError(f"after_ready={after_ready!r} is unknown; use one of {', '.join(get_args(Action))}")
        self.action = after_ready
        self.counts: Counter[tuple[str, str]] = Counter()
        self.violations: list[Violation] = []
        self._seen: set[tuple[str, str, str]] = set()
        self._variants: dict[str, deque[Flat]] = {}  # by function, those that were compiled so far
        api.watch(self)

    def stop(self) -> None:
        """Watch no more."""
        api.unwatch(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self.stop()

    def begun(self, span: Span) -> None:
        """Report what is about to compile or to be timed."""
        if not listen.ready_ns or wanted.get():
            return
        if span.kind == "stage":
            self._compile(span)
        elif span.kind == "candidate":
            search = _around(span, "autotune")
            asked = search.said.get("asked") if search else None
            key = ", ".join(f"{name}={value}" for name, value in (asked or {}).items())
            self._report("tuning", span.name, key, lambda: f"{key or 'its key'} was not tuned for before")
        elif span.kind == "graph_compile" and _around(span, "graph_compile") is None:
            self._report("graph", span.name, str(span.said), lambda: str(span.said.get("fn_name") or "a new graph"))

    def ended(self, span: Span, t_ns: int, attrs: dict[str, Any], error: str) -> None:  # noqa: ARG002 - as it is told
        """Remember which variants there are."""
        if span.facts and not error and len(self._variants) < MAX_KEPT:
            self._variants.setdefault(span.facts["function"], deque(maxlen=REMEMBERED)).append(flat(span.facts))

    def _compile(self, stage: Span) -> None:
        asked = _around(stage, "jit")
        if _around(stage, "candidate") is not None:
            return
        if asked is None:  # Triton's own thread pool, or a call of `triton.compile`
            kernel = stage.name.partition("/")[0]
            self._report("compile", kernel, kernel, lambda: "outside of a launch")
        elif asked.facts:
            self._report("compile", asked.name, asked.facts["key"], lambda: self._why(asked.facts))
        else:
            self._report("compile", asked.name, str(asked.said.get("text")), lambda: "a config of a generated kernel")

    def _why(self, facts: dict[str, Any]) -> str:
        known = self._variants.get(facts["function"], ())
        return f"{why_new(nearest(flat(facts), known), {})}; not found on disk"

    def _report(self, what: str, kernel: str, key: str, why: Callable[[], str]) -> None:
        new = (what, kernel, key) not in self._seen and len(self._seen) < MAX_KEPT
        if not new and self.action != "raise":
            return
        found = Violation(what, kernel, key, why(), clock.now())
        if new:
            self._seen.add((what, kernel, key))
            self.counts[what, kernel] += 1
            self.violations.append(found)
        if self.action == "raise" and what != "graph":
            raise RefusedError(str(found))
        if self.action != "count" and new:
            warn("after-ready", str(found))


def _around(span: Span, kind: str) -> Span | None:
    """The nearest span of a kind around one, on its thread."""
    return next((other for other in reversed(span.state.stack) if other.kind == kind and other is not span), None)
