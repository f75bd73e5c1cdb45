"""CUDA-graph capture: by hand, by torch's helpers, and by Inductor's CUDA-graph trees."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

from tprof.record import guard, spans
from tprof.record import session as live
from tprof.record.around import Method, around
from tprof.record.spans import Cold
from tprof.record.threads import local

if TYPE_CHECKING:
    from types import TracebackType

    from tprof.record.session import Session

HOOK: Final = "graph_capture"
CAPTURE: Final = "CUDAGraph"


def wrap_capture_begin(original: Method) -> Method:
    """`torch.cuda.CUDAGraph.capture_begin`: a capture is on until `capture_end`, whoever asked for it."""

    def capture_begin(self: Any, *args: Any, **kwargs: Any) -> Any:
        session = live.active
        if session is None:
            return original(self, *args, **kwargs)
        with contextlib.ExitStack() as failed:
            failed.enter_context(Cold(session, HOOK, HOOK, lambda: (CAPTURE, {})))
            result = original(self, *args, **kwargs)
            failed.pop_all()  # it stays open until `capture_end`
        return result

    return capture_begin


def wrap_capture_end(original: Method) -> Method:
    """`torch.cuda.CUDAGraph.capture_end`: the graph is there and instantiated, or the capture had failed."""

    def capture_end(self: Any, *args: Any, **kwargs: Any) -> Any:
        with contextlib.ExitStack() as over:
            over.push(_end)
            return original(self, *args, **kwargs)

    return capture_end


def _end(_kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
    guard.call(HOOK, _close, error)


def _close(error: BaseException | None) -> None:
    for span in reversed(local.state.stack):
        if span.kind == HOOK and span.name == CAPTURE:
            spans.end(span, {}, error)
            return


def _tree(_: Session, manager: Any, __: Any, function_id: Any, *___: Any, **____: Any) -> tuple[str, dict[str, Any]]:
    found = {"compile_id": getattr(manager, "compile_id", None), "function": getattr(function_id, "id", None)}
    return "cudagraph_tree", {key: str(value) for key, value in found.items() if value is not None}


# `CUDAGraphTreeManager.record_function`: Inductor synchronizes, captures, and runs the graph once.
wrap_record_function: Final = around(HOOK, _tree)
