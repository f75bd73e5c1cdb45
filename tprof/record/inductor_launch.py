"""Launches of Inductor's kernels: `CachingAutotuner.run`, since the static launcher knows no launch hooks.

Where the launcher is Triton's, its hooks record the launch, and this adds nothing but its range.
"""

from __future__ import annotations

import sys
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tprof.record import describe, guard, inductor_static
from tprof.record import session as live
from tprof.record.clock import now
from tprof.record.inductor import name_of
from tprof.record.spans import request_id
from tprof.record.tables import Runner, ShapeKey
from tprof.record.threads import ThreadState, local
from tprof.record.triton_launch import mark

if TYPE_CHECKING:
    from tprof.record.around import Method
    from tprof.record.session import Session

HOOK: Final = "inductor_launch"


def wrap_run(original: Method) -> Method:
    """`CachingAutotuner.run`: what generated code calls; its first call may compile, load and tune."""
    profiler = sys.modules["torch.autograd.profiler"]

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        session = live.active
        if session is None or not session.records_launches:
            return original(self, *args, **kwargs)
        state, key, t_exit = local.state, None, -1
        try:
            row = session.tables.runners.get(id(self))
            if row is not None and row.launchers is self.launchers:
                key = row.keys.get(row.select(args))
            if key is None or key.attributes is not None or state.open is not None or profiler._is_profiler_enabled:  # noqa: SLF001
                key = enter(session, state, self, args)
        except guard.FAILURES as error:
            switch_off(session, error)
        t_enter = now()
        try:
            result = original(self, *args, **kwargs)
            t_exit = now()
        finally:
            try:
                if key is None or state.cold or state.marker is not None or key.attributes is not None:
                    leave(session, state, self, args, key, (t_enter, t_exit))
                elif state.t_enter < t_enter:
                    state.launches += (t_enter, t_exit, key.id, state.candidate, request_id.get())
            except guard.FAILURES as error:
                switch_off(session, error)
        return result

    return run


def switch_off(session: Session, error: BaseException) -> None:
    """Record no more launches."""
    session.records_launches = False
    guard.switch_off(HOOK, error)


def enter(session: Session, state: ThreadState, tuner: Any, args: tuple[Any, ...]) -> ShapeKey | None:
    """Begin a launch that is new, or that somebody is shown: NVTX, torch.profiler."""
    key = find_key(session, tuner, args)
    if state.open is not None:
        session.close_launch(state)
    if key is not None and key.attributes is not None:
        session.nvtx.domain.push_range(key.attributes)
    profiler = sys.modules["torch.autograd.profiler"]
    if key is not None and profiler._is_profiler_enabled:  # noqa: SLF001 - as torch's own code generator
        mark(state, key)
    return key


def find_key(session: Session, tuner: Any, args: tuple[Any, ...]) -> ShapeKey | None:
    """The shape key of a launch; None while it is open what will be launched."""
    row = session.tables.runners.get(id(tuner))
    if row is None or row.launchers is not tuner.launchers:
        if not _has_chosen(tuner):
            return None
        row = _runner(session, tuner, args)
    return session.tables.key(row, row.select(args), partial(_facts, row, tuner, args))


def _runner(session: Session, tuner: Any, args: tuple[Any, ...]) -> Runner:
    rows, where = session.tables.runners, id(tuner)
    alive = weakref.ref(tuner, lambda _: rows.pop(where, None))
    kernel = _kernel_id(session, tuner, tuner.launchers[0])
    row = rows[where] = Runner(kernel, name_of(tuner), alive, session.tables.selector(args))
    row.launchers, row.names = tuner.launchers, describe.argument_names(tuner.fn)
    return row


def _facts(row: Runner, tuner: Any, args: tuple[Any, ...]) -> dict[str, Any]:
    named = list(zip(row.names, args, strict=False))[: describe.MAX_ARGUMENTS]
    grid = guard.call("inductor_grid", _grid, tuner, args, row.launchers[0].config)
    return {"grid": grid, "args": {name: describe.argument(value) for name, value in named}}


def leave(
    session: Session,
    state: ThreadState,
    tuner: Any,
    args: tuple[Any, ...],
    key: ShapeKey | None,
    times: tuple[int, int],
) -> None:
    """End a launch that was cold, or that somebody was shown; unless Triton's hooks recorded it."""
    t_enter, t_exit = times
    if state.marker is not None:
        state.marker.__exit__(None, None, None)
        state.marker = None
    if key is not None and key.attributes is not None:
        session.nvtx.domain.pop_range()
    if state.t_enter >= t_enter:
        return
    key = key or find_key(session, tuner, args)
    if key is None:
        return
    span = state.candidate
    if state.cold:
        span = span or (state.cold if state.cold_ns >= t_enter or state.cold_name == key.function else 0)
        state.cold = 0
    state.launches += (max(t_enter, state.cold_ns), t_exit, key.id, span, request_id.get())


def _has_chosen(tuner: Any) -> bool:
    """Whether `run` will launch what is there: one launcher, that no coordinate descent will replace."""
    if len(tuner.launchers) != 1:
        return False
    found = getattr(tuner.launchers[0].config, "found_by_coordesc", False)
    return found or not tuner.inductor_meta.get("coordinate_descent_tuning", False)


def _kernel_id(session: Session, tuner: Any, launcher: Any) -> int:
    """The kernel behind a launcher: a static one is bound into its globals, Triton's own too."""
    scope = getattr(launcher, "__globals__", {})
    if "bin" in scope:
        return session.tables.kernel(scope["bin"]).id
    static = getattr(scope.get("runner"), "__self__", None)
    if static is not None:
        return inductor_static.kernel_id(session, static)
    name = name_of(tuner)
    digest = str(getattr(launcher, "cache_hash", None) or name)
    return session.tables.kernel_by_hash(digest, lambda: {"name": name, "function": name})


def _grid(tuner: Any, args: tuple[Any, ...], config: Any) -> list[int] | None:
    """Before torch 2.8 the grid is an argument that only the launcher evaluates."""
    if not hasattr(tuner, "_interpret_args_grid"):
        return None
    return [int(n) for n in tuner._interpret_args_grid(args, config)[1]]  # noqa: SLF001 - what its own dumps call
