"""OpenTelemetry spans of what is cold, as children of the request that pays for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from opentelemetry import context, trace
from opentelemetry.trace import Status, StatusCode

from tprof.record import api, listen, spans

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span as OtelSpan
    from opentelemetry.trace import TracerProvider

    from tprof.record.spans import Span

COLD: Final = {  # kind of span -> what its span of OpenTelemetry is called, before the kernel's name
    "jit": "compile", "load": "load", "launcher_build": "build launcher of", "autotune": "autotune",
    "candidate": "candidate of", "graph_compile": "compile graph:", "graph_capture": "capture graph",
    "compile_wait": "wait for compile:",
}  # fmt: skip
MAX_OPEN: Final = 10_000  # spans that may be open at once; the oldest are given up


class OpenTelemetry(listen.Listener):
    """Spans of this process from now on, with or without a recording.

    A cold span is a child of the cold span around it, else of OpenTelemetry's current span. `tprof.request` makes its
    own, a child of the current one (a web framework's, say), which is the current one where the request is served.

    Args:
        provider: of the tracer; the global one by default.
    """

    def __init__(self, provider: TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("tprof", tracer_provider=provider)
        self._open: dict[int, OtelSpan] = {}  # by id of tprof's span
        # by id of tprof's `serve`: what it made current, and the token
        self._served: dict[int, tuple[Context, Any]] = {}
        api.watch(self)

    def close(self) -> None:
        """Hear no more."""
        api.unwatch(self)

    def begun(self, span: Span) -> None:
        """Open the span of a request or of something cold."""
        if span.kind == "request":
            self._start(span, span.name, {"tprof.request_id": str(span.said.get("request_id"))})
        elif span.kind == "serve":
            self._serve(span)
        elif span.kind in COLD:
            about, phase = spans.about(span), str(spans.PHASES[span.kind])
            attributes = {"tprof.kernel": about, "tprof.phase": phase, "tprof.after_ready": bool(listen.ready_ns)}
            self._start(span, f"{COLD[span.kind]} {span.name}", attributes)

    def ended(self, span: Span, t_ns: int, attrs: dict[str, Any], error: str) -> None:  # noqa: ARG002 - as it is told
        """Close it: with its time by phase, and with what went wrong."""
        if span.kind == "serve":
            self._leave(span)
        elif (ours := self._open.pop(span.id, None)) is not None:
            if span.hit is not None:
                ours.set_attribute("tprof.disk_hit", span.hit)
            for phase, ns in span.phases.items():
                ours.set_attribute(f"tprof.{phase}_s", ns / 1e9)
            if error:
                ours.set_status(Status(StatusCode.ERROR, error))
            ours.end()

    def _start(self, span: Span, name: str, attributes: dict[str, Any]) -> None:
        around = (self._open.get(other.id) for other in reversed(span.state.stack) if other is not span)
        parent = next((ours for ours in around if ours is not None), None)
        within = None if parent is None else trace.set_span_in_context(parent)
        self._open[span.id] = self._tracer.start_span(name, context=within, attributes=attributes)
        while len(self._open) > MAX_OPEN:
            del self._open[next(iter(self._open))]

    def _serve(self, span: Span) -> None:
        request = self._open.get(spans.request_id.get())
        if request is not None:
            within = trace.set_span_in_context(request)
            self._served[span.id] = (within, context.attach(within))

    def _leave(self, span: Span) -> None:
        within, token = self._served.pop(span.id, (None, None))
        if token is not None and context.get_current() is within:  # else it is left in another task than entered in
            context.detach(token)
