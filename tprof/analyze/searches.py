"""Searches of an autotuner as `tprof cold` tells them: why, for whom, at what cost, with what result."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from tprof.analyze.tunings import Tuning, tunings
from tprof.model import ints

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tprof.analyze.asked import Asked
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.result import Row
    from tprof.model import Trace

REMEMBERED: Final = 64  # searches for a kernel in a process that a new one is compared with


def search_rows(attribution: Attribution, window: tuple[int, int], asked: Asked) -> list[Row]:
    """One row per search that ended in the window, in time order.

    Args:
        attribution: of the trace.
        window: (begin, end), ns.
        asked: who asked for what.

    Returns:
        Rows with `wall_ns` of the thread, of which `compile_ns` made candidates usable; `device_ns` and `flush_ns` of
        the device; `margin_share`, by how much the winner beat the next best, of the next best; `repeats`, how many
        earlier searches were for the same key, and `repeated_from`, the process of the last of them. What is not
        recorded is null.
    """
    trace = attribution.trace
    process = trace.threads["process"].to_pylist()
    near: dict[tuple[object, ...], deque[Tuning]] = {}  # by process and kernel
    same: dict[tuple[object, ...], list[Tuning]] = {}  # by kernel and key
    rows: list[Row] = []
    for search in tunings(trace, (attribution.extent[0], window[1])):
        earlier = near.setdefault((process[search.thread], search.kernel), deque(maxlen=REMEMBERED))
        again = same.setdefault((search.kernel, *search.key.items(), *search.types), [])
        if search.end_ns > window[0]:
            who = asked.of(search.thread, search.start_ns, search.end_ns)
            rows.append(
                {"at_ns": search.start_ns - attribution.extent[0], **_row(trace, search, earlier, again), **who}
            )
        if search.key:
            earlier.append(search)
            again.append(search)
    return rows


def _row(trace: Trace, search: Tuning, near: Sequence[Tuning], same: Sequence[Tuning]) -> Row:
    return {
        "kernel": search.kernel,
        "key": search.key_text,
        "why": _why(search, near),
        "wall_ns": search.wall_ns,
        "compile_ns": _first_uses(trace, search),
        **_result(search.candidates),
        "failed": sum(c["error"] is not None for c in search.candidates) if search.basis == "recorded" else None,
        "repeats": len(same) if search.key else None,
        "repeated_from": same[-1].pid if same else None,
        "pid": search.pid,
        "basis": search.basis,
    }


def _why(search: Tuning, earlier: Sequence[Tuning]) -> str | None:
    """What in the key is new against the most similar earlier one of the process; None where keys are not recorded."""
    if not search.key:
        return None
    if not earlier:
        return "first key in the process"
    changes = min((_changes(before, search) for before in reversed(earlier)), key=len)
    return "; ".join(changes) or "the same key again: its result was lost"


def _changes(before: Tuning, after: Tuning) -> list[str]:
    changed = [f"{name}: {before.key.get(name)} -> {value}" for name, value in after.key.items()
               if before.key.get(name) != value]  # fmt: skip
    kinds = f"dtypes: {', '.join(before.types)} -> {', '.join(after.types)}"
    return changed + [kinds.replace("torch.", "")] * (before.types != after.types)


def _result(candidates: list[Row]) -> Row:
    timed = sorted(c["median_ns"] for c in candidates if c["median_ns"] is not None)
    best = next((c for c in candidates if c["winner"]), None)
    return {
        "candidates": len(candidates),
        "best": best and best["config"],
        "median_ns": best and best["median_ns"],
        "margin_share": _margin(best["median_ns"], timed) if best else None,
        **{key: _sum(c[key] for c in candidates) for key in ("device_ns", "flush_ns")},
    }


def _margin(best: int | None, timed: list[int]) -> float | None:
    """By how much the best result is below the next one, as a share of the next one."""
    if best is None or len(timed) < 2 or not timed[1]:
        return None
    return 1 - best / timed[1]


def _sum(values: Iterable[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    return sum(known) if known else None


def _first_uses(trace: Trace, search: Tuning) -> int:
    """Time of the first uses of compiled kernels that began within a search, ns."""
    start, end, thread = (ints(trace.compiles, c) for c in ("start_ns", "end_ns", "thread"))
    inside = (thread == search.thread) & (start >= search.start_ns) & (start < search.end_ns)
    return int((end - start)[inside].sum())
