"""Wraps around compiling: a specialization, its stages, the disk cache, the launcher and the module load."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tprof.record import describe, guard, spans
from tprof.record import session as live
from tprof.record.around import Method, around
from tprof.record.patches import patches
from tprof.record.spans import Cold, Span
from tprof.record.threads import local

if TYPE_CHECKING:
    from tprof.record.session import Session


def wrap_do_compile(original: Method) -> Method:
    """`JITFunction._do_compile` (3.5 on): a specialization that is not in memory yet."""
    signature = inspect.signature(original)

    def _do_compile(self: Any, *args: Any, **kwargs: Any) -> Any:
        session = live.active
        if session is None:
            return original(self, *args, **kwargs)
        with Cold(session, "jit", "jit", lambda: _new(self)) as cold:
            bound = guard.call("jit", _bound, signature, (self, *args), kwargs) or {}
            guard.call("jit", _specialize, session, cold, self, bound)
            compiled = original(self, *args, **kwargs)
            cold.report(lambda: _compiled(session, cold, compiled))
        return compiled

    return _do_compile


def wrap_call_hook(original: Method) -> Method:
    """`JITFunction._call_hook` (before 3.5): called right before and right after a compile."""
    signature = inspect.signature(original)

    def _call_hook(self: Any, *args: Any, **kwargs: Any) -> Any:
        session = live.active
        if session is None:
            return original(self, *args, **kwargs)
        bound = guard.call("jit", _bound, signature, (self, *args), kwargs) or {}
        compiled = guard.call("jit", _in_memory, self, bound)  # it is there after the compile, and not before
        if compiled is None:
            guard.call("jit", _begin_jit, session, self, bound)
        else:
            guard.call("jit", _end_jit, session, compiled)
        skip = original(self, *args, **kwargs)
        if skip or compiled is not None:
            guard.call("jit:end", _end_left, bool(skip))
        return skip

    return _call_hook


def _bound(signature: inspect.Signature, args: Any, kwargs: Any) -> dict[str, Any]:
    return dict(signature.bind(*args, **kwargs).arguments)


def _in_memory(function: Any, bound: dict[str, Any]) -> Any:
    caches = function.device_caches if hasattr(function, "device_caches") else function.cache
    cache = caches[bound["device"]]
    return (cache[0] if isinstance(cache, tuple) else cache).get(bound["key"])


def _new(function: Any) -> tuple[str, dict[str, Any]]:
    _ensure_source(function)
    return str(function.fn.__name__), {"caller": describe.caller()}


def _specialize(session: Session, cold: Cold, function: Any, bound: dict[str, Any]) -> None:
    span = cold.span.id if cold.span else 0
    facts = describe.specialization(function, bound)
    if cold.span is not None:
        cold.span.facts = {**describe.function(function), **facts}
    cold.attrs["specialization"] = session.tables.specialization(function, facts, span)


def _begin_jit(session: Session, function: Any, bound: dict[str, Any]) -> None:
    cold = Cold(session, "jit", "jit", lambda: _new(function)).__enter__()
    if cold.span is not None:
        cold.span.open_ended, cold.span.attrs = True, cold.attrs
        _specialize(session, cold, function, bound)


def _open_jit() -> Span | None:
    stack = local.state.stack
    return stack[-1] if stack and stack[-1].kind == "jit" else None


def _end_jit(session: Session, compiled: Any) -> None:
    span = _open_jit()
    if span is not None:
        spans.end(span, {**span.attrs, "kernel": session.tables.kernel(compiled).id, "cache_hit": span.hit})


def _end_left(skipped: bool) -> None:  # noqa: FBT001 - the only thing there is to say
    """A user's hook declined the compile, or what should have ended it failed."""
    span = _open_jit()
    if span is not None:
        spans.end(span, {**span.attrs, "skipped": True} if skipped else span.attrs)


def _compiled(session: Session, cold: Cold, compiled: Any) -> dict[str, Any]:
    """What came of a specialization: a kernel, a future (async compile), or nothing (a hook of the user said no)."""
    if compiled is None:
        return {"skipped": True}
    if hasattr(type(compiled), "result"):
        return {"async": True}
    return {"kernel": session.tables.kernel(compiled).id, "cache_hit": cold.span.hit if cold.span else None}


def _ensure_source(function: Any) -> None:
    """Gluon's source class is only known once a Gluon kernel compiles."""
    source = getattr(function, "ASTSource", None)
    if isinstance(source, type) and "make_ir" in vars(source):
        patches.wrap(source, "make_ir", wrap_make_ir)


def _ir(_: Session, source: Any, *__: Any, **___: Any) -> tuple[str, dict[str, Any]]:
    local.state.source = str(getattr(source, "name", "?"))
    return f"{local.state.source}/ir", {"stage": "ir"}


# `ASTSource.make_ir`: from Python to the first IR.
wrap_make_ir: Final = around("stage", _ir)


def wrap_add_stages(original: Method) -> Method:
    """A backend's `add_stages`: every stage that it adds."""

    def add_stages(self: Any, stages: dict[str, Method], *args: Any, **kwargs: Any) -> Any:
        result = original(self, stages, *args, **kwargs)
        if live.active is not None:
            for stage, work in list(stages.items()):
                stages[stage] = around("stage", partial(_stage, stage), _size)(work)
        return result

    return add_stages


def _stage(stage: str, _: Session, __: Any, metadata: Any) -> tuple[str, dict[str, Any]]:
    return f"{local.state.source}/{stage}", {"stage": stage, "hash": metadata.get("hash")}


def _size(_: Cold, result: Any, *__: Any) -> dict[str, Any]:
    return {"bytes": len(result)} if isinstance(result, bytes) else {}


def _get(_: Session, manager: Any, filename: str) -> tuple[str, dict[str, Any]]:
    return filename, _lookup(manager, "get")


def _put(_: Session, manager: Any, filename: str, group: Any) -> tuple[str, dict[str, Any]]:
    return filename, {**_lookup(manager, "put"), "files": len(group)}


def _lookup(manager: Any, operation: str) -> dict[str, Any]:
    return {"op": operation, "key": getattr(manager, "key", None), "manager": type(manager).__name__}


def _found(cold: Cold, group: Any, *_: Any) -> dict[str, Any]:
    around_it = [span for span in local.state.stack if span is not cold.span]
    if around_it and around_it[-1].kind == "jit":
        around_it[-1].hit = bool(group)
    return {"hit": bool(group)}


# The cache manager: a lookup on disk; a compiled kernel goes there.
wrap_get_group: Final = around("cache", _get, _found)
wrap_put_group: Final = around("cache", _put)


def _load(session: Session, compiled: Any) -> tuple[str, dict[str, Any]]:
    guard.call("launcher_build", _ensure_launcher)
    row = session.tables.kernel(compiled)
    return row.function, {"kernel": row.id, "hash": getattr(compiled, "hash", None), "bytes": len(compiled.kernel)}


def _ensure_launcher() -> None:
    """The driver's launcher class; a kernel is being loaded, so the driver is there already."""
    from triton.runtime import driver  # noqa: PLC0415 - Triton is at work

    launcher = driver.active.launcher_cls
    if isinstance(launcher, type):
        patches.wrap(launcher, "__init__", wrap_launcher)


# `CompiledKernel._init_handles`: launcher build, then the module goes to the device; or OutOfResources.
wrap_init_handles: Final = around(
    "load",
    _load,
    lambda _, __, compiled: describe.loaded(compiled),
    unless=lambda compiled: compiled.module is not None,
)


def _launcher(_: Session, __: Any, source: Any, metadata: Any, *___: Any, **____: Any) -> tuple[str, dict[str, Any]]:
    return str(getattr(source, "name", None) or getattr(metadata, "name", "?")), {}


# The launcher's constructor: compiles C where Triton is old or the cache cold.
wrap_launcher: Final = around("launcher_build", _launcher)
