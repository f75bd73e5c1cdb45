"""How much compiling and tuning a stretch of a program may do: measured by its spans, not by a stopwatch."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final, Self

from tprof.record import api, spans
from tprof.record.listen import Listener

if TYPE_CHECKING:
    from types import TracebackType

    from tprof.record.spans import Span

COMPILE: Final = ("compile", "graph_compile")
SHOWN: Final = 5  # what cost most


class Budget(Listener):
    """Adds up what compiles and tunes within a `with` block, on every thread; with or without a recording.

    A nanosecond counts once, for the innermost span that is open on its thread: compiling a candidate is compiling,
    timing it is tuning. Looking a variant or a winner up on disk, finding it there and loading it are neither.

    Args:
        compile_s: seconds that may go to compiling (Triton, Dynamo, Inductor); None: any.
        autotune_s: seconds that may go to tuning; None: any.
    """

    def __init__(self, compile_s: float | None = None, autotune_s: float | None = None) -> None:
        self.allowed = {"compile_s": compile_s, "autotune_s": autotune_s}
        self.spent_ns: Counter[tuple[str, str]] = Counter()  # by (compile_s or autotune_s, name of what it was for)

    def __enter__(self) -> Self:
        api.watch(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        api.unwatch(self)

    def ended(self, span: Span, t_ns: int, attrs: dict[str, Any], error: str) -> None:  # noqa: ARG002 - as it is told
        """Take a span's own time."""
        if span.kind == "candidate":
            self.spent_ns["autotune_s", span.name] += span.own_ns
        elif spans.phase_of(span) in COMPILE:
            self.spent_ns["compile_s", spans.about(span)] += span.own_ns

    def broken(self) -> str:
        """What was overspent, and on what, in a sentence; empty if nothing was."""
        bounds = {what: allowed for what, allowed in self.allowed.items() if allowed is not None}
        return "; ".join(filter(None, (self._over(what, allowed) for what, allowed in bounds.items())))

    def _over(self, what: str, allowed: float) -> str:
        spent = Counter({name: ns for (kind, name), ns in self.spent_ns.items() if kind == what})
        if spent.total() <= allowed * 1e9:
            return ""
        most = ", ".join(f"{name} {ns / 1e9:.3g} s" for name, ns in spent.most_common(SHOWN))
        return f"{what} is {spent.total() / 1e9:.3g} s where {allowed:g} s are allowed: {most}"
