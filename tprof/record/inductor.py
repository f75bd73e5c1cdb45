"""Wraps around Inductor's generated Triton kernels: compiling a config, timing it, the search, and what it remembers.

A config is compiled once, by itself, perhaps in a worker process; timed at the kernel's first call; and the winner may
be the start of a coordinate descent, which compiles and times more of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tprof.record import session as live
from tprof.record.spans import Cold, Span
from tprof.record.threads import local
from tprof.record.triton_tune import config

if TYPE_CHECKING:
    from tprof.record.session import Session

Method = Callable[..., Any]
ORIGIN: Final = {"origin": "inductor"}


def name_of(tuner: Any) -> str:
    """Name of the generated function that a `CachingAutotuner` runs."""
    return str(getattr(tuner.fn, "__name__", None) or tuner.inductor_meta.get("kernel_name") or "?")


def wrap_precompile_config(original: Method) -> Method:
    """`CachingAutotuner._precompile_config`: one config, from source or from Triton's disk cache."""

    def _precompile_config(self: Any, cfg: Any, *args: Any, **kwargs: Any) -> Any:
        session = live.active
        if session is None:
            return original(self, cfg, *args, **kwargs)
        with Cold(session, "inductor_jit", "jit", lambda: (name_of(self), {**ORIGIN, **_described(cfg)})) as cold:
            result = original(self, cfg, *args, **kwargs)
            cold.report(lambda: _compiled(session, cold.span, result))
        return result

    return _precompile_config


def _described(cfg: Any) -> dict[str, Any]:
    return {"text": str(cfg), "config": config(cfg)}


def _compiled(session: Session, span: Span | None, result: Any) -> dict[str, Any]:
    """What came of it: a compile result (2.8 on), or a pair of kernel and launcher (before)."""
    kernel = result[0] if isinstance(result, tuple) else result.kernel
    seen = span.attrs.get("kernel") if span is not None else None
    return {
        "kernel": seen or session.tables.kernel(kernel).id,
        "cache_hit": span.hit if span is not None else None,
        "launcher": "static" if type(result).__name__.startswith("Static") else "triton",
    }


def wrap_bench(original: Method) -> Method:
    """`CachingAutotuner.bench`: one candidate; configs that spill registers are turned away without being run."""

    def bench(self: Any, launcher: Any, *args: Any, **kwargs: Any) -> Any:
        session, state = live.active, local.state
        if session is None:
            return original(self, launcher, *args, **kwargs)
        outer = state.candidate
        with Cold(session, "inductor_candidate", "candidate", lambda: _candidate(self, launcher)) as cold:
            state.candidate = cold.span.id if cold.span else outer
            try:
                ms = original(self, launcher, *args, **kwargs)
            finally:
                state.candidate = outer
            cold.report(lambda: _timing(launcher, ms))
        return ms

    return bench


def _candidate(tuner: Any, launcher: Any) -> tuple[str, dict[str, Any]]:
    found = {**ORIGIN, **_described(launcher.config), "key": getattr(launcher, "cache_hash", None)}
    return name_of(tuner), {**found, "registers": launcher.n_regs, "spills": launcher.n_spills}


def _timing(launcher: Any, ms: Any) -> dict[str, Any]:
    if math.isfinite(ms):
        return {"timings_ms": [float(ms)]}
    spills = launcher.n_spills or 0
    why = f"not timed: it spills {spills} registers" if spills else "invalid configuration"
    return {"timings_ms": None, "failed": why}


def wrap_autotune(original: Method) -> Method:
    """`CachingAutotuner.autotune_to_one_config`: every config that compiled is timed, the fastest stays."""

    def autotune_to_one_config(self: Any, *args: Any, **kwargs: Any) -> Any:
        session = live.active
        if session is None:
            return original(self, *args, **kwargs)
        with Cold(session, "inductor_autotune", "autotune", lambda: _search(self)) as cold:
            result = original(self, *args, **kwargs)
            cold.report(lambda: _best(self.launchers[0].config))
        return result

    return autotune_to_one_config


def _search(tuner: Any) -> tuple[str, dict[str, Any]]:
    return name_of(tuner), {**ORIGIN, "method": "all", "configs": len(tuner.launchers), "key_names": []}


def _best(winner: Any) -> dict[str, Any]:
    return {"key": [], "best": str(winner), "config": config(winner)}


def wrap_coordesc(original: Method) -> Method:
    """`CoordescTuner.autotune`: from one config to better ones, a coordinate at a time."""

    def autotune(self: Any, *args: Any, **kwargs: Any) -> Any:
        session = live.active
        if session is None:
            return original(self, *args, **kwargs)
        name = str(getattr(self, "name", "?"))
        attrs = {**ORIGIN, "method": "coordinate_descent", "key_names": []}
        with Cold(session, "inductor_coordesc", "autotune", lambda: (name, attrs)) as cold:
            winner = original(self, *args, **kwargs)
            cold.report(lambda: _best(winner))
        return winner

    return autotune


def wrap_read_best(original: Method) -> Method:
    """`AutotuneCache.read_best`: the winner of an earlier process, from disk or a remote cache."""

    def read_best(self: Any, inductor_meta: Any, *args: Any, **kwargs: Any) -> Any:
        session = live.active
        if session is None:
            return original(self, inductor_meta, *args, **kwargs)
        with Cold(session, "inductor_cache", "autotune_cache", lambda: _remembered(self, inductor_meta, "get")) as cold:
            best = original(self, inductor_meta, *args, **kwargs)
            cold.report(lambda: {"hit": best is not None, **(_best(best) if best is not None else {})})
        return best

    return read_best


def wrap_save(original: Method) -> Method:
    """`AutotuneCache.save`: a winner is written for later processes."""

    def save(self: Any, *args: Any, **kwargs: Any) -> Any:
        session = live.active
        if session is None:
            return original(self, *args, **kwargs)
        with Cold(session, "inductor_cache", "autotune_cache", lambda: _remembered(self, {}, "put")):
            return original(self, *args, **kwargs)

    return save


def _remembered(cache: Any, inductor_meta: Any, operation: str) -> tuple[str, dict[str, Any]]:
    file = Path(cache.local_cache[1]).stem if cache.local_cache else "remote"
    return str(inductor_meta.get("kernel_name") or file), {**ORIGIN, "op": operation, "file": file}
