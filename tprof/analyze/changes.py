"""What changed in kind between two sides: the path of an operator, a fusion, a config, specializations, a warm-up."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tprof.align.calls import is_kind
from tprof.align.ranges import enclosing, request_rows
from tprof.analyze.busy import event_purposes
from tprof.analyze.noise import told
from tprof.analyze.result import few
from tprof.analyze.rows import grouped
from tprof.events import PURPOSES
from tprof.intervals import NONE
from tprof.model import Trace, codes, ints

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze.attribution import Attribution
    from tprof.analyze.options import Options
    from tprof.analyze.result import Row

Ran = tuple[tuple[str, str, float], ...]  # path, kernel, executions a call
_COMPILED: Final = frozenset({"triton", "inductor"})
_ORDINAL: Final = re.compile(r"_\d+$")
_NAMED: Final = 4
_SERVED, _EARLIER = "while a request was served", "before any request"


def changes(before: Sequence[Attribution], after: Sequence[Attribution], options: Options) -> list[Row]:
    """Rows of change, name, before, after, basis.

    `change` is one of: moved, fell back, compiled now, fusion lost, fused, other kernels, other config, more
    specializations, fewer specializations, compiled again, compiled less, cold in a request, warm in requests, less
    warm-up, more warm-up.
    """
    sides = [[a.trace for a in side] for side in (before, after)]
    ran = told(*([_ran(t) for t in side] for side in sides))
    rows = [_changed(name, shape, *pair) for (name, shape), pair in ran.items() if None not in pair]
    configs = told(*([_winners(t) for t in side] for side in sides))
    rows += [_row("other config", k, *_apart(*pair)) for k, pair in configs.items() if None not in pair]
    recorded = all(f == "tprof" for side in sides for t in side for f in t.sources["format"].to_pylist()[:1])
    basis = "recorded" if recorded else "inferred"
    for name, count in _COUNTS.items():
        for key, (was, now) in told(*([count(t) for t in side] for side in sides)).items():
            rows.append(_row(name[(now or 0) > (was or 0)], key, was or 0, now or 0, basis))
    cold = told(*([_cold_in_requests(t, options, basis) for t in side] for side in sides))
    for key, (was, now) in cold.items():
        if _SERVED in {was, now}:
            change = "cold in a request" if now == _SERVED else "warm in requests"
            rows.append(_row(change, key, was or "nothing", now or "nothing", basis))
    return _merged(rows)


def _merged(rows: list[Row]) -> list[Row]:
    """Rows that say the same of several names as one: a change in a layer shows in every request."""
    return [
        own[0] | {"name": few(row["name"] for row in own)}
        for own in grouped(rows, "change", "before", "after", "basis").values()
    ]


def _row(change: str, name: str, before: Any, after: Any, basis: str = "recorded") -> Row:
    return {"change": change, "name": name, "before": str(before), "after": str(after), "basis": basis}


# ---- which kernels an operator or a range runs


def _ran(trace: Trace) -> dict[tuple[str, str], Ran]:
    """By (operator or range, input shapes): the working kernels of a call; of a range those of all that is in it."""
    working = event_purposes(trace) == PURPOSES.index("work")
    launch = ints(trace.device, "launch")
    rows = np.flatnonzero(working & (launch != NONE) & is_kind(trace.device, "kernel"))
    found: dict[tuple[str, str], Ran] = {}
    for inside in (("op",), ("range", "startend", "request")):
        found |= _per_call(trace, rows, enclosing(trace.host, launch[rows], is_kind(trace.host, *inside)))
    return found


def _per_call(trace: Trace, rows: np.ndarray, call: np.ndarray) -> dict[tuple[str, str], Ran]:
    """Kernels per call of each operator and shape."""
    name, names = codes(trace.host, "name")
    shape, shapes = codes(trace.host, "shape_key")
    kernel, kernels = codes(trace.device, "name")
    path, paths = codes(trace.device, "path")
    ran: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    calls: dict[tuple[str, str], set[int]] = {}
    known = call != NONE
    unique, times = np.unique(
        np.stack([call[known], kernel[rows[known]], path[rows[known]]], 1), axis=0, return_counts=True
    )
    for (c, k, p), n in zip(unique.tolist(), times.tolist(), strict=True):
        key = names[name[c]], shapes[shape[c]] if shape[c] != NONE else ""
        which = paths[p] if p != NONE else "other"
        ran.setdefault(key, Counter())[which, stable_name(kernels[k], which)] += n
        calls.setdefault(key, set()).add(c)
    return {k: tuple(sorted((p, n, round(x / len(calls[k]), 2)) for (p, n), x in c.items())) for k, c in ran.items()}


def stable_name(kernel: str, path: str) -> str:
    """A kernel's name in every run: Inductor numbers its kernels anew in each process."""
    return _ORDINAL.sub("", kernel) if path == "inductor" else kernel


def _changed(name: str, shape: str, before: Ran, after: Ran) -> Row:
    was, now = ({path for path, _, _ in ran} for ran in (before, after))
    fewer, more = (sum(n for _, _, n in ran) for ran in (before, after))
    if was != now:
        lost, won = bool(was & _COMPILED) and not now & _COMPILED, bool(now & _COMPILED) and not was & _COMPILED
        change = "fell back" if lost else "compiled now" if won else "moved"
    else:
        change = "other kernels" if fewer == more else "fusion lost" if more > fewer else "fused"
    return _row(change, f"{name} {shape}".strip(), _spelled(before, after), _spelled(after, before), "inferred")


def _spelled(ran: Ran, other: Ran) -> str:
    """How many kernels a call runs, and those that the other side does not: `2 kernels: triton add`."""
    count = sum(n for _, _, n in ran)
    apart = [f"{path} {name}" + (f" x{n:g}" if n != 1 else "") for path, name, n in ran if (path, name, n) not in other]
    return f"{count:g} kernel{'' if count == 1 else 's'}" + (f": {few(apart, _NAMED)}" if apart else "")


# ---- what was compiled and tuned, and when


def _winners(trace: Trace) -> dict[str, frozenset[str]]:
    """Configs that each kernel's autotuner chose."""
    won = grouped((row for row in trace.candidates.to_pylist() if row["winner"]), "kernel")
    return {kernel: frozenset(_config(row["config"]) for row in own) for kernel, own in won.items()}


def _apart(before: frozenset[str], after: frozenset[str]) -> list[str]:
    """Both sides' configs without what all of them have in common."""
    common = set.intersection(*(set(config.split(", ")) for config in before | after))
    sides = [[[part for part in c.split(", ") if part not in common] for c in sorted(side)] for side in (before, after)]
    return ["; ".join(", ".join(parts) for parts in side) for side in sides]


def _config(text: str | None) -> str:
    """A config as it is written; JSON of one as `name=value` pairs."""
    try:
        said = json.loads(text or "")
    except ValueError:
        return str(text)
    return ", ".join(f"{k}={v}" for k, v in said.items()) if isinstance(said, dict) else str(text)


def _specializations(trace: Trace) -> dict[str, int]:
    return dict(Counter(trace.specializations["function"].to_pylist()))


def _compiles(trace: Trace) -> dict[str, int]:
    """Compiles of each kernel; what came from disk is none."""
    rows = zip(trace.compiles["kernel"].to_pylist(), trace.compiles["cache_hit"].to_pylist(), strict=True)
    return dict(Counter(kernel for kernel, hit in rows if kernel and not hit))


def _cold_in_requests(trace: Trace, options: Options, basis: str) -> dict[str, str]:
    """Kernels for which something was cold: while a request was served, by any, or before.

    Only what is as well known as `basis` says: where both sides were recorded, what is inferred beside may be known of
    one of them only.
    """
    rows = request_rows(trace, options.ranges)
    start, end = ints(trace.host, "start_ns")[rows], ints(trace.host, "end_ns")[rows]
    found: dict[str, str] = {}
    for span in trace.spans.to_pylist():
        kernel, served = span["kernel"], bool(((start <= span["start_ns"]) & (span["start_ns"] < end)).any())
        if kernel and basis in {span["basis"], "inferred"} and found.get(kernel) != _SERVED:
            found[kernel] = _SERVED if served else _EARLIER
    return found


def _warmup(trace: Trace) -> dict[str, int]:
    """Executions that ran to warm up."""
    return {"device": int((event_purposes(trace) == PURPOSES.index("warmup")).sum())}


# what it is called when there are fewer, and more -> what is counted
_COUNTS: Final = {
    ("fewer specializations", "more specializations"): _specializations,
    ("compiled less", "compiled again"): _compiles,
    ("less warm-up", "more warm-up"): _warmup,
}
