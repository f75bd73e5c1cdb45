"""Wraps around Inductor's generated Triton kernels: compiling a config, timing it, the search, and what it remembers.

A config is compiled once, by itself, perhaps in a worker process; timed at the kernel's first call; and the winner may
be the start of a coordinate descent, which compiles and times more of them.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tprof.record.around import around
from tprof.record.triton_tune import config

if TYPE_CHECKING:
    from tprof.record.session import Session
    from tprof.record.spans import Cold

ORIGIN: Final = {"origin": "inductor"}


def name_of(tuner: Any) -> str:
    """Name of the generated function that a `CachingAutotuner` runs."""
    return str(getattr(tuner.fn, "__name__", None) or tuner.inductor_meta.get("kernel_name") or "?")


def _variant(_: Session, tuner: Any, cfg: Any, *__: Any, **___: Any) -> tuple[str, dict[str, Any]]:
    return name_of(tuner), {**ORIGIN, **_described(cfg)}


def _described(cfg: Any) -> dict[str, Any]:
    return {"text": str(cfg), "config": config(cfg)}


def _compiled(cold: Cold, result: Any, *_: Any, **__: Any) -> dict[str, Any]:
    """What came of it: a compile result (2.8 on), or a pair of kernel and launcher (before)."""
    kernel = result[0] if isinstance(result, tuple) else result.kernel
    seen = cold.span.attrs.get("kernel") if cold.span is not None else None
    return {
        "kernel": seen or cold.session.tables.kernel(kernel).id,
        "cache_hit": cold.span.hit if cold.span is not None else None,
        "launcher": "static" if type(result).__name__.startswith("Static") else "triton",
    }


# `CachingAutotuner._precompile_config`: one config, from source or from Triton's disk cache.
wrap_precompile_config: Final = around("jit", _variant, _compiled, hook="inductor_jit")


def _candidate(_: Session, tuner: Any, launcher: Any, *__: Any, **___: Any) -> tuple[str, dict[str, Any]]:
    found = {**ORIGIN, **_described(launcher.config), "key": getattr(launcher, "cache_hash", None)}
    return name_of(tuner), {**found, "registers": launcher.n_regs, "spills": launcher.n_spills}


def _timing(_: Cold, ms: Any, __: Any, launcher: Any, *___: Any, **____: Any) -> dict[str, Any]:
    if math.isfinite(ms):
        return {"timings_ms": [float(ms)]}
    spills = launcher.n_spills or 0
    why = f"not timed: it spills {spills} registers" if spills else "invalid configuration"
    return {"timings_ms": None, "failed": why}


# `CachingAutotuner.bench`: one candidate; configs that spill registers are turned away without being run.
wrap_bench: Final = around("candidate", _candidate, _timing, hook="inductor_candidate")


def _search(_: Session, tuner: Any, *__: Any, **___: Any) -> tuple[str, dict[str, Any]]:
    return name_of(tuner), {**ORIGIN, "method": "all", "configs": len(tuner.launchers), "key_names": []}


def _fastest(_: Cold, __: Any, tuner: Any, *___: Any, **____: Any) -> dict[str, Any]:
    return _best(tuner.launchers[0].config)


def _best(winner: Any) -> dict[str, Any]:
    return {"key": [], "best": str(winner), "config": config(winner)}


# `CachingAutotuner.autotune_to_one_config`: every config that compiled is timed, the fastest stays.
wrap_autotune: Final = around("autotune", _search, _fastest, hook="inductor_autotune")


def _descent(_: Session, tuner: Any, *__: Any, **___: Any) -> tuple[str, dict[str, Any]]:
    return str(getattr(tuner, "name", "?")), {**ORIGIN, "method": "coordinate_descent", "key_names": []}


# `CoordescTuner.autotune`: from one config to better ones, a coordinate at a time.
wrap_coordesc: Final = around(
    "autotune", _descent, lambda _, winner, *__, **___: _best(winner), hook="inductor_coordesc"
)


def _remembered(_: Session, cache: Any, inductor_meta: Any, *__: Any, **___: Any) -> tuple[str, dict[str, Any]]:
    return _cache(cache, inductor_meta, "get")


def _cache(cache: Any, inductor_meta: Any, operation: str) -> tuple[str, dict[str, Any]]:
    file = Path(cache.local_cache[1]).stem if cache.local_cache else "remote"
    return str(inductor_meta.get("kernel_name") or file), {**ORIGIN, "op": operation, "file": file}


def _recalled(_: Cold, best: Any, *__: Any, **___: Any) -> dict[str, Any]:
    return {"hit": False} if best is None else {"hit": True, **_best(best)}


# `AutotuneCache`: the winner of an earlier process, from disk or a remote cache; a winner is written for later ones.
wrap_read_best: Final = around("autotune_cache", _remembered, _recalled, hook="inductor_cache")
wrap_save: Final = around(
    "autotune_cache", lambda _, cache, *__, **___: _cache(cache, {}, "put"), hook="inductor_cache"
)
