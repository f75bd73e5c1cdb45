"""Dynamo, AOT autograd and Inductor at work: their phases, why a graph was compiled again, and their graph caches.

The phases come from the logger that every `dynamo_timed` block reports to, graph caches from its instant events. The
reasons of a recompile are taken where Dynamo computes them: a handler on `torch.__trace` would see them too, but makes
torch dump every graph for it, and changes the text of one of its exceptions.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from tprof.record import clock, guard, spans
from tprof.record import session as live
from tprof.record.journal import plain
from tprof.record.threads import local

if TYPE_CHECKING:
    from tprof.record.around import Method
    from tprof.record.session import Session

HOOK: Final = "dynamo"
METADATA: Final = ("compile_id", "fn_name", "is_backward", "kernel_name")
OWN_SPANS: Final = (  # of these the wraps of tprof.record.inductor say more
    "CachingAutotuner.benchmark_all_configs", "CachingAutotuner.coordinate_descent_tuning",
)  # fmt: skip
MAX_REASONS: Final = 32
KINDS: Final = ("graph_compile", "compile_wait", "autotune")


def kind_of(event: str) -> str:
    """Kind of span for a `dynamo_timed` block."""
    if event == "async_compile.wait" or event.endswith("_template_precompiling"):
        return "compile_wait"
    if event.endswith(("_template_autotuning", "_template_prescreening", ".combo_sequential_autotune")):
        return "autotune"
    return "graph_compile"


def wrap_event_start(original: Method) -> Method:
    """`ChromiumEventLogger.log_event_start`: a phase begins."""

    def log_event_start(
        self: Any, event_name: str, time_ns: int, metadata: dict[str, Any], *args: Any, **kw: Any
    ) -> Any:
        result = original(self, event_name, time_ns, metadata, *args, **kw)
        session = live.active
        if session is not None and event_name not in OWN_SPANS:
            guard.call(HOOK, _begin, session, event_name, metadata)
        return result

    return log_event_start


def _begin(session: Session, event: str, metadata: dict[str, Any]) -> None:
    attrs = {key: plain(metadata[key]) for key in METADATA if metadata.get(key) not in (None, "None")}
    span = spans.begin(session, kind_of(event), event, attrs)
    span.handled = sys.exception()


def wrap_event_end(original: Method) -> Method:
    """`ChromiumEventLogger.log_event_end`: a phase is over, or an exception leaves it."""

    def log_event_end(self: Any, event_name: str, *args: Any, **kwargs: Any) -> Any:
        if live.active is not None and event_name not in OWN_SPANS:
            guard.call(HOOK, _end, event_name, sys.exception())
        return original(self, event_name, *args, **kwargs)

    return log_event_end


def _end(event: str, error: BaseException | None) -> None:
    for span in reversed(local.state.stack):
        if span.name == event and span.kind in KINDS:
            spans.end(span, {}, error if error is not span.handled else None)
            return


def wrap_instant_event(original: Method) -> Method:
    """`ChromiumEventLogger.log_instant_event`: among others, what a graph cache answered."""

    def log_instant_event(self: Any, event_name: str, time_ns: int, metadata: Any = None, *args: Any, **kw: Any) -> Any:
        session = live.active
        if session is not None and "_cache_" in event_name:
            guard.call(HOOK, _graph_cache, session, event_name, metadata or {})
        return original(self, event_name, time_ns, metadata, *args, **kw)

    return log_instant_event


def _graph_cache(session: Session, event: str, metadata: dict[str, Any]) -> None:
    cache, _, outcome = event.rpartition("_cache_")
    if cache not in ("fx_graph", "autograd"):
        return
    found = {"key": metadata.get("key"), "reason": metadata.get("cache_bypass_reason")}
    found["time_saved_ns"] = metadata.get("time_saved_ns")
    add(session, "graph_cache", {"cache": cache, "outcome": outcome, **{k: plain(v) for k, v in found.items() if v}})


def wrap_recompile_reasons(original: Method) -> Method:
    """`get_and_maybe_log_recompilation_reasons`, as Dynamo's frame converter calls it."""

    def reasons_of(entries: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        reasons = original(entries, frame, *args, **kwargs)
        session = live.active
        if session is not None:
            guard.call(HOOK, _recompile, session, frame, reasons)
        return reasons

    return reasons_of


def _recompile(session: Session, frame: Any, reasons: Any) -> None:
    code = frame.f_code
    texts = [str(reason) for reason in (reasons if isinstance(reasons, list | tuple) else [reasons])]
    where = {"function": code.co_qualname, "file": code.co_filename, "line": code.co_firstlineno}
    add(session, "recompile", {**where, "reasons": [text[: spans.MAX_TEXT] for text in texts[:MAX_REASONS]]})


def add(session: Session, kind: str, facts: dict[str, Any]) -> None:
    """A record of something that took no time of its own, within the innermost open span of this thread."""
    stack, tid = local.state.stack, local.state.tid
    span = stack[-1].id if stack else 0
    session.journal.add({"type": kind, "tid": tid, "t_ns": clock.now(), "span": span, **facts})
