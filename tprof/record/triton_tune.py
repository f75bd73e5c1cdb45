"""Wraps around `triton.autotune`: a search, its pruning, its disk cache, and every candidate with what became of it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tprof.record import describe, guard, spans
from tprof.record.around import Method, around
from tprof.record.threads import ThreadState, local

if TYPE_CHECKING:
    from tprof.record.session import Session
    from tprof.record.spans import Cold

CONFIG = ("num_warps", "num_stages", "num_ctas", "maxnreg", "ir_override")


def name_of(tuner: Any) -> str:
    """Name of the function that a tuner tunes."""
    return str(getattr(getattr(tuner, "base_fn", None), "__name__", "?"))


def _prune(session: Session, tuner: Any, *args: Any, **kwargs: Any) -> tuple[str, dict[str, Any]]:
    guard.call("autotune", _open_search, session, tuner, args[0] if args else kwargs)
    return name_of(tuner), {"before": len(tuner.configs)}


# `prune_configs` is the first thing that `run` does for a key it does not know: the search begins here.
wrap_prune: Final = around("prune", _prune, lambda _, kept, *__, **___: {"after": len(kept)})


def _open_search(session: Session, tuner: Any, given: dict[str, Any]) -> None:
    """Begin a search. Nothing is sure to run when it is over, so it is closed by what this thread does next.

    `given` are the keyword arguments of the launch.
    """
    state = local.state
    if spans.at_search(state):
        close_search(state)  # one that an exception ended
    if any(other is tuner for other, _, _ in state.tuning):
        return
    names = [str(key) for key in tuner.keys]
    function = describe.function(tuner.base_fn)["function"]
    values = {**(tuner.nargs or {}), **given}
    asked = {name: describe.argument(values[name]) for name in names if name in values}
    attrs = {"configs": len(tuner.configs), "function": function, "key_names": names, "asked": asked}
    attrs["caller"] = describe.caller()
    span = spans.begin(session, "autotune", name_of(tuner), attrs)
    session.search_closer = close_search
    state.tuning.append((tuner, span, set(tuner.cache)))


def close_search(state: ThreadState) -> None:
    """End the innermost search of a thread: with its result, or without one if an exception ended it."""
    tuner, span, known = state.tuning.pop()
    new = [key for key in tuner.cache if key not in known]
    attrs = _result(tuner, new[-1]) if new else {}
    spans.end(span, attrs, None if new else span.error or "left by an exception", span.last_ns)


def wrap_warmup(original: Method) -> Method:
    """`Autotuner.warmup` prunes too, but searches nothing."""

    def warmup(self: Any, *args: Any, **kwargs: Any) -> Any:
        tuning = local.state.tuning
        tuning.append((self, None, set()))
        try:
            return original(self, *args, **kwargs)
        finally:
            if tuning and tuning[-1][0] is self:  # else a recording began meanwhile
                tuning.pop()

    return warmup


def _result(tuner: Any, key: Any) -> dict[str, Any]:
    best = tuner.cache[key]
    exact = all(type(part) in (int, float, bool, str, type(None)) for part in key)  # JSON gives them back as they are
    values = {"values": list(key)} if exact else {}
    return {"key": [str(part) for part in key], **values, "best": str(best), "config": config(best)}


def config(candidate: Any) -> dict[str, Any]:
    """A `triton.Config` as names and values."""
    options = {name: getattr(candidate, name, None) for name in CONFIG}
    return {**candidate.kwargs, **{name: value for name, value in options.items() if value is not None}}


def _candidate(tuner: Any, candidate: Any) -> tuple[str, dict[str, Any]]:
    return name_of(tuner), {"text": str(candidate), "config": config(candidate)}


def _timings(cold: Cold, timings: Any) -> dict[str, Any]:
    """A candidate without timings failed; why, its innermost failed span knows."""
    found = [float(t) for t in (timings if isinstance(timings, list | tuple) else [timings])]
    if all(map(math.isfinite, found)):
        return {"timings_ms": found}
    why = cold.span.error if cold.span is not None else ""
    return {"timings_ms": None, "failed": why or "no timing, and no reason was seen"}


# `Autotuner._bench`: one candidate; it swallows what a candidate may fail with, so its spans are asked.
wrap_bench: Final = around(
    "candidate",
    lambda _, tuner, *__, **given: _candidate(tuner, given.get("config")),
    lambda cold, timings, *_, **__: _timings(cold, timings),
)

# `check_disk_cache` (3.4 on): tuned results on disk; on a miss it runs the whole search within itself, and from 3.4 to
# 3.6 returns None, as where the cache does not apply.
wrap_check_disk_cache: Final = around(
    "autotune_cache", lambda _, tuner, *__, **___: (name_of(tuner), {}), lambda _, hit, *__, **___: {"hit": bool(hit)}
)
