"""The hot path: what a warm launch pays for being recorded. Measured by benchmarks/launch_overhead.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tprof.record import guard, listen
from tprof.record import session as live
from tprof.record.clock import now
from tprof.record.spans import at_search, request_id
from tprof.record.threads import local

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.record.session import Session
    from tprof.record.tables import Kernel, ShapeKey
    from tprof.record.threads import ThreadState

HOOK = "launch"


def listeners(hook: Any) -> Any:
    """Who listens at a hook slot: a chain's own list, which goes on changing, or what a slot for one callable holds."""
    return hook.calls if hasattr(hook, "calls") else (hook,) if hook else ()


def build(original: Callable[..., Any], runtime: Any) -> Callable[..., Any]:
    """The replacement of `CompiledKernel.launch_metadata`, with which a launch begins; it ends with the hook `leave`.

    Nothing in between belongs to the recorder, and `leave` ignores what it is handed, so that other tools' metadata
    can be passed on untouched.
    """
    enter_hook = runtime.launch_enter_hook
    enter_calls, exit_calls = listeners(enter_hook), listeners(runtime.launch_exit_hook)
    alone = 1 if hasattr(enter_hook, "calls") else 0  # a slot for one callable is looked at before ours is in it

    def launch_metadata(self: Any, grid: Any, stream: Any, *args: Any) -> Any:
        session = live.active
        if session is None:
            return original(self, grid, stream, *args)
        row = session.tables.kernels.get(id(self))
        # Before 3.5 each attribute of a kernel is looked up in Python: only ask one that was never launched.
        if (row is None or not row.keys) and self.module is None:
            self._init_handles()  # as `original` does; a failure of it is the user's
        state = local.state
        if state.tuning and at_search(state):
            session.close_search(state)
        if listen.at_launch:
            listen.launching(state, self, args)
        if not session.records_launches:
            return original(self, grid, stream, *args)
        # Triton's own launch metadata need not be built while nobody else listens to launches.
        heard = runtime.launch_enter_hook is not enter_hook or enter_calls or len(exit_calls) > alone
        metadata = original(self, grid, stream, *args) if heard else None
        try:
            key = enter(session, state, self, row, grid, args)
        except guard.FAILURES as error:
            session.records_launches = False
            guard.switch_off(HOOK, error)
            return metadata or original(self, grid, stream, *args)
        return metadata or key.lazy

    return launch_metadata


def enter(
    session: Session, state: ThreadState, kernel: Any, row: Kernel | None, grid: Any, args: tuple[Any, ...]
) -> ShapeKey:
    """Begin a launch on this thread; `row` is the kernel's, where it is known."""
    key = None
    if row is not None and type(grid) is tuple:
        key = row.keys.get((grid, row.select(args)))
    if key is None:
        key = session.tables.shape(kernel, grid, args)
    if state.open is not None:
        session.close_launch(state)
    if key.attributes is not None:
        session.nvtx.domain.push_range(key.attributes)
    profiler = session.profiler
    if profiler is not None and profiler._is_profiler_enabled:  # noqa: SLF001 - as torch's own code generator
        mark(state, key)
    state.open = key
    state.t_enter = now()
    return key


def leave(_metadata: Any = None) -> None:
    """The exit hook: the driver has taken the launch."""
    state = local.state
    if state.sample is not None:
        sample, state.sample = state.sample, None
        guard.call("sample", sample)
    key = state.open
    if key is None:
        return
    t_exit = now()
    state.open = None
    try:
        if state.marker is not None:
            state.marker.__exit__(None, None, None)
            state.marker = None
        if key.attributes is not None and live.active is not None:
            live.active.nvtx.domain.pop_range()
        span = state.candidate
        if state.cold:
            span = span or (state.cold if state.cold_name == key.function else 0)
            state.cold = 0
        state.launches += (state.t_enter, t_exit, key.id, span, request_id.get())
    except guard.FAILURES as error:
        guard.switch_off(HOOK, error)


def mark(state: Any, key: Any) -> None:
    """A marker that torch.profiler records, and whose External id the GPU's kernel will carry."""
    marker = key.markers.get(state.tid)
    if marker is None:
        import torch  # noqa: PLC0415 - its profiler is running

        fast = torch._C._profiler._RecordFunctionFast  # noqa: SLF001 - what Inductor's generated code uses
        marker = key.markers[state.tid] = fast(key.name, [], {"tprof_key": key.id})
    marker.__enter__()
    state.marker = marker
