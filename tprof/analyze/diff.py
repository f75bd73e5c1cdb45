"""What changed between two recordings, or two sets of repeats: figures, phases, kernels, requests, cold start, kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tprof.align.captures import asked_by
from tprof.align.ranges import looked_up
from tprof.analyze.changes import changes, stable_name
from tprof.analyze.check import judged, unknown
from tprof.analyze.cold import cold_totals
from tprof.analyze.devices import device_rows
from tprof.analyze.kernels import working_rows
from tprof.analyze.noise import compare
from tprof.analyze.requests import request_budgets
from tprof.analyze.result import Result, Row, source_rows
from tprof.analyze.rows import cold_spans, percentile
from tprof.events import COLD_PHASES, Note
from tprof.intervals import NONE, summed
from tprof.model import Trace, codes, first_rows, int3, ints, refine

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tprof.analyze.attribution import Attribution
    from tprof.analyze.options import Options

Measured = dict[Any, int]
_GATED: Final = ("device work", "cold start", "request p50", "request p99")  # less is better, whatever was recorded
_FIGURES: Final = frozenset({*_GATED, "window", "device idle", "cold tax p50", "cold tax p99"})
_ENDLESS: Final = 1e9  # growth from nothing; JSON has no infinity
_NO_NOISE: Final = "one recording a side, so noise is not known"
_UNKNOWN_NOISE: Final = (
    "one recording a side: how far repeats of one program lie apart is not known, so small changes may be noise; "
    "give a folder of repeats for each side"
)


def diff(before: Sequence[Attribution], after: Sequence[Attribution], options: Options) -> Result:
    """Compare two sides, each of one recording or of repeats.

    Returns:
        Tables `changes` (in kind), `figures`, `phases`, `kernels`, `requests` and `cold_start`: a row for what differs
        beyond the noise of the repeats, the largest change first. None where nothing does.
    """
    sides = before, after
    formats = {f for side in sides for a in side for f in a.trace.sources["format"].to_pylist()[:1]}
    tables: dict[str, list[Row]] = {"changes": changes(before, after, options)}
    notes = [n for side in sides for a in side for n in a.trace.notes]
    # Two profilers tell shapes in different words; the grid is the same in both.
    other = {} if len(formats) == 1 else {"kernels": partial(_kernels, told=False)}
    for name, measure in (_TABLES | other).items():
        measured = [[measure(a, options) for a in side] for side in sides]
        known, blind = _known(measured), sum(m is None for side in measured for m in side)
        if 0 < blind < len(before) + len(after):
            notes.append(Note("not-compared", f"{name} are not compared: some of the recordings hold none", blind))
        tables[name] = [dict(zip(KEYS[name], _tuple(key), strict=True)) | r for key, r in compare(*known).items()]
    if len(before) == len(after) == 1:
        notes.append(Note("noise-unknown", _UNKNOWN_NOISE))
    payload: Row = {"before": [_name(a) for a in before], "after": [_name(a) for a in after], **tables}
    shown = {name: rows[: options.top] for name, rows in tables.items()}
    sources = [row for side in sides for a in side for row in source_rows(a.trace)]
    return Result("diff", shown, payload, tuple(dict.fromkeys(notes)), sources)


def regressions(
    before: Sequence[Attribution], after: Sequence[Attribution], options: Options, limit: float
) -> list[Row]:
    """Rows of `check`: each figure that both sides have may grow by no more than a share, noise aside.

    Args:
        before: the base.
        after: what is judged.
        options: what part of each.
        limit: share of the base's figure.
    """
    sides = _known([[_figures(a, options) for a in side] for side in (before, after)])
    found = compare(*sides)
    rows = []
    for name in (name for name in _GATED if name in sides[0][0]):
        row = found.get(name, {"change_share": 0.0, "band_ns": 0})
        grown, why = row["change_share"], _NO_NOISE if row["band_ns"] is None else ""
        value, why = (_ENDLESS, "the base had none") if grown is None else (grown, why)
        rows.append(judged(f"max-regression {name}", value, limit, "of the base", why=why))
    reason = "the two have no figure in common: neither device work nor cold start nor requests"
    return rows or [unknown("max-regression", limit, "of the base", reason)]


def _known(sides: list[list[Measured | None]]) -> list[list[Measured]]:
    """What every recording can tell: nothing where one of them cannot; of figures, those that all of them have."""
    every = [m for side in sides for m in side if m is not None]
    if len(every) < sum(map(len, sides)):
        return [[], []]
    lacking = {k for m in every for k in m if isinstance(k, str) and k in _FIGURES and any(k not in n for n in every)}
    return [[{k: v for k, v in m.items() if k not in lacking} for m in side if m is not None] for side in sides]


def _name(of: Attribution) -> str:
    """The sources of a recording; the processes of a run are one."""
    paths = of.trace.sources["path"].to_pylist()
    return ", ".join(dict.fromkeys(path.rpartition("/process-")[0] or path for path in paths))


def _tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


# ---- what is measured of one recording


def _figures(of: Attribution, options: Options) -> Measured:
    """The figures of a recording on one line each; those that it cannot know are left out."""
    window, trace = options.window or of.extent, of.trace
    found: Measured = {"window": window[1] - window[0]}
    if of.events:
        devices = device_rows(of, options, window)
        found["device work"] = sum(d["busy_by_purpose"].get("work", 0) for d in devices)
        found["device idle"] = sum(d["idle_ns"] for d in devices)
    if trace.host.num_rows:
        totals = cold_totals(of, window)
        found["cold start"] = sum(totals[f"{phase}_ns"] for phase in COLD_PHASES)
    if served := request_budgets(of, replace(options, top=None)):
        for name, key in (("request", "wall_ns"), ("cold tax", "cold_tax_ns")):
            ordered = np.sort([row[key] for row in served])
            found |= {f"{name} p{p}": percentile(ordered, p) or 0 for p in (50, 99)}
    return found


def _phases(of: Attribution, options: Options) -> Measured | None:
    """Wall clock of the devices by part, summed; None where none was seen."""
    if not of.events:
        return None
    found: Counter[str] = Counter()
    for device in device_rows(of, options, options.window or of.extent):
        found.update(device["wall_by_phase"])
    return dict(found)


def _kernels(of: Attribution, options: Options, *, told: bool = True) -> Measured | None:
    """Device time of work by kernel and shape: as it is `told` (by launch or operator), else the grid."""
    if not of.events:
        return None
    trace, working = of.trace, working_rows(of, options)
    name, names = codes(trace.device, "name")
    length = (ints(trace.device, "end_ns") - ints(trace.device, "start_ns"))[working]
    shape, texts = _shapes(trace, working, told=told)
    key = refine(name[working].astype(np.int64), shape)
    first = first_rows(key)
    path, paths = codes(trace.device, "path")
    found: Counter[tuple[str, str]] = Counter()
    for row, ns in zip(first.tolist(), summed(key, length).tolist(), strict=True):
        on = path[working[row]]
        found[stable_name(names[name[working[row]]], paths[on] if on != NONE else ""), texts[shape[row]]] += ns
    return dict(found)


def _requests(of: Attribution, options: Options) -> Measured | None:
    """Requests by name and how many of that name came before: the first, the second, and so on."""
    seen: Counter[str] = Counter()
    found: Measured = {}
    for row in request_budgets(of, replace(options, top=None)):
        seen[row["name"]] += 1
        found[row["name"], seen[row["name"]]] = row["wall_ns"]
    return found or None


def _cold(of: Attribution, options: Options) -> Measured | None:
    """Cold time by kernel and phase; of what no kernel can be charged with, the kernel is null."""
    if not of.trace.host.num_rows:
        return None
    found: Counter[tuple[str | None, str]] = Counter()
    for span in cold_spans(of.trace, options.window or of.extent):
        found[span["kernel"], span["phase"]] += span["end_ns"] - span["start_ns"]
    return {key: ns for key, ns in found.items() if ns}


def _shapes(trace: Trace, rows: np.ndarray, *, told: bool) -> tuple[np.ndarray, list[str]]:
    """Code of each device event's shape, and their texts."""
    shape, shapes = codes(trace.host, "shape_key")
    call, parent = asked_by(trace.device)[rows], ints(trace.host, "parent")
    own = looked_up(shape, call)
    code = np.where(own == NONE, looked_up(shape, looked_up(parent, call)), own) if told else np.full(len(rows), NONE)
    grids, grid = np.unique(int3(trace.device, "grid")[rows], axis=0, return_inverse=True)
    texts = [*shapes, *("" if g[0] == NONE else f"grid {'x'.join(map(str, g))}" for g in grids.tolist())]
    return np.where(code == NONE, len(shapes) + grid.reshape(-1), code).astype(np.int64), texts


_TABLES: Final[dict[str, Callable[..., Measured | None]]] = {
    "figures": _figures,
    "phases": _phases,
    "kernels": _kernels,
    "requests": _requests,
    "cold_start": _cold,
}
KEYS: Final = {
    "figures": ("figure",), "phases": ("part",), "kernels": ("kernel", "shape"), "requests": ("name", "occurrence"),
    "cold_start": ("kernel", "phase"),
}  # fmt: skip
