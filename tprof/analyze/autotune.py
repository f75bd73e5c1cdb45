"""Autotuning explained: why each winner won, whether it did, and whether the search was worth its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil
from typing import TYPE_CHECKING, Final

from tprof.analyze.result import Result, Row, source_rows, weakest
from tprof.analyze.rows import grouped
from tprof.analyze.tunings import Tuning, growing, tunings
from tprof.analyze.variants import Variants

if TYPE_CHECKING:
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.options import Options
    from tprof.kernelspec import Cost
    from tprof.model import Trace

Costs = Mapping[str, "Callable[[Mapping[str, str]], Cost]"]
_ALIKE: Final = 0.1  # candidates that lie this close together do not tell tiles apart
_ENOUGH: Final = 4  # candidates from which on that says something
_POOR: Final = 0.5  # of the ceiling
_EMPTY: Final = 0.5  # waves: the device is never half full
_NEAR: Final = 0.05  # of the best: as good as the winner


def autotune(
    attribution: Attribution, options: Options, costs: Costs | None = None, ceiling_bytes_per_s: float | None = None
) -> Result:
    """Searches inside the window: their candidates ranked, and what each kernel's searches cost and won.

    Args:
        attribution: of the trace.
        options: window, kernels asked about, and rows of the ranked tables.
        costs: kernel -> what a call must move and compute, from the values of its autotune key; without it no rate is
            shown, and candidates are never called poor.
        ceiling_bytes_per_s: what the device's memory was measured to give.
    """
    trace = attribution.trace
    variants, known = Variants(trace), costs or {}
    told: list[Row] = []
    ranked: list[Row] = []
    searches = [t for t in tunings(trace, options.window or attribution.extent) if options.about(t.kernel)]
    for tuning in searches:
        rows = _ranked(tuning, variants, known)
        told.append(_tuning(tuning, rows, trace, attribution.extent[0], ceiling_bytes_per_s))
        ranked += [{"tuning": len(told) - 1, "kernel": tuning.kernel, "key": tuning.key_text, **row} for row in rows]
    kernels = _kernels(searches, told, ranked)[: options.top]
    tables = {"kernels": kernels, "tunings": told, "candidates": ranked}
    return Result("autotune", tables, dict(tables), trace.notes, source_rows(trace))


def _ranked(tuning: Tuning, variants: Variants, costs: Costs) -> list[Row]:
    """Candidates of one search, best first, failed ones last; times are what the tuner compared, where known."""
    rows = [
        {
            "order": order,
            "config": c["config"],
            "time_ns": c["median_ns"],
            "spread_ns": c["spread_ns"],
            "winner": c["winner"],
            "error": c["error"],
            "basis": c["basis"],
            **variants.facts(tuning, c),
        }
        for order, c in enumerate(tuning.candidates)
    ]
    for row in rows:
        row["time_ns"] = row["device_mean_ns"] if row["time_ns"] is None and not row["error"] else row["time_ns"]
        row.update(_rates(row["time_ns"], tuning, costs))
    rows.sort(key=lambda row: (row["time_ns"] is None, row["time_ns"] or 0, row["order"]))
    return [{"rank": rank, **row} for rank, row in enumerate(rows, 1)]


def _rates(time_ns: int | None, tuning: Tuning, costs: Costs) -> Row:
    """Bytes and operations per second, by what a call must move and compute at least."""
    cost = costs[tuning.kernel](tuning.key) if tuning.kernel in costs and tuning.key and time_ns else None
    if cost is None or not time_ns:
        return {"bytes_per_s": None, "operations_per_s": None}
    moved = cost.bytes_read + cost.bytes_written
    return {"bytes_per_s": moved * 1e9 / time_ns, "operations_per_s": cost.operations * 1e9 / time_ns}


def _tuning(tuning: Tuning, rows: list[Row], trace: Trace, zero_ns: int, ceiling: float | None) -> Row:
    """One search: the winner, its margin, why it won, and how many calls pay for the search."""
    timed = [row for row in rows if row["time_ns"]]
    best = next((row for row in timed if row["winner"]), timed[0] if timed else None)
    other = next((row for row in timed if row is not best), None)
    first = next((row for row in timed if row["order"] == 0), None)
    saved = _saved(first, best)
    margin = _margin(best, other)
    calls = _calls(trace, tuning)
    return {
        "at_ns": tuning.start_ns - zero_ns,
        "start_ns": tuning.start_ns,
        "end_ns": tuning.end_ns,
        "kernel": tuning.kernel,
        "pid": tuning.pid,
        "key": tuning.key_text,
        "wall_ns": tuning.wall_ns,
        "candidates": len(rows),
        "failed": sum(row["error"] is not None for row in rows),
        "winner": best["config"] if best else None,
        "winner_ns": best["time_ns"] if best else None,
        **margin,
        "why": _why(best, other),
        "verdict": "; ".join(_doubts(timed, best, ceiling, tie=margin["tie"])) or None,
        "saved_per_call_ns": saved,
        "calls": calls,
        "saved_ns": saved * calls if saved is not None and calls is not None else None,
        "break_even_calls": -(-tuning.wall_ns // saved) if saved else None,
        "basis": tuning.basis,
    }


def _saved(first: Row | None, best: Row | None) -> int | None:
    """How much faster a call is than with the first configuration, ns; by device time where that is known."""
    if first is None or best is None:
        return None
    known = first["device_mean_ns"] and best["device_mean_ns"]
    column = "device_mean_ns" if known else "time_ns"
    return max(first[column] - best[column], 0)


def _margin(best: Row | None, other: Row | None) -> Row:
    """How much faster the winner was than the next, and whether that is less than its own spread."""
    if best is None or other is None:
        return {"margin_share": None, "tie": None}
    margin = other["time_ns"] - best["time_ns"]
    spreads = [row["spread_ns"] for row in (best, other) if row["spread_ns"] is not None]
    return {"margin_share": margin / other["time_ns"], "tie": margin < max(spreads) if spreads else None}


def _why(best: Row | None, other: Row | None) -> str | None:
    """What the winner has better than the next: facts beside the result, no proof of a cause."""
    if best is None or other is None:
        return None
    said = [text for text in (_less(best, other, *what) for what in _SMALLER) if text]
    held, held_by_other = best["blocks_per_sm"], other["blocks_per_sm"]
    if held and held_by_other and held > held_by_other:
        said.append(f"{held} blocks on a multiprocessor instead of {held_by_other} (limited by {other['limited_by']})")
    return "; ".join(said) or "registers, spills, shared memory, occupancy and waves do not tell it from the next"


_SMALLER: Final = (
    ("waves", "waves over the device", "{:.2g}"),
    ("spills", "spilled registers", "{}"),
    ("registers", "registers a thread", "{}"),
    ("shared_bytes", "bytes of shared memory a block", "{:,}"),
    ("blocks", "blocks in the grid (each does more)", "{:,}"),
)


def _less(best: Row, other: Row, column: str, noun: str, written: str) -> str | None:
    mine, its = best[column], other[column]
    if mine is None or its is None or ceil(mine) >= ceil(its):  # a part of a wave takes as long as a whole one
        return None
    return f"{written.format(mine)} {noun} instead of {written.format(its)}"


def _doubts(timed: list[Row], best: Row | None, ceiling: float | None, *, tie: bool | None) -> list[str]:
    """What to doubt of the result, in words."""
    if best is None:
        return ["no candidate gave a time"]
    doubts = [_launches_measured(timed, best), _alike(timed, best, ceiling)]
    if tie:
        doubts.append("a tie with the next: the margin lies within the benchmark's spread")
    if best["waves"] is not None and best["waves"] < _EMPTY:
        doubts.append(f"the grid fills {best['waves']:.0%} of the device: smaller tiles or split-K would spread it")
    return [text for text in doubts if text]


def _launches_measured(timed: list[Row], best: Row) -> str | None:
    """A kernel shorter than its launch: then the benchmark ranks the host's luck."""
    fastest = min((r for r in timed if r["device_mean_ns"]), key=lambda r: r["device_mean_ns"], default=best)
    own = best["device_mean_ns"]
    if not own or best["time_ns"] <= 2 * own or own <= (1 + _NEAR) * fastest["device_mean_ns"]:
        return None
    share = f"{own:,} of {best['time_ns']:,} ns on the device"
    return f"the benchmark measured launches ({share}): by device time {fastest['config']} is the fastest"


def _alike(timed: list[Row], best: Row, ceiling: float | None) -> str | None:
    """Enough candidates that all take about the same time."""
    if len(timed) < _ENOUGH or timed[-1]["time_ns"] > (1 + _ALIKE) * timed[0]["time_ns"]:
        return None
    rate = best["bytes_per_s"]
    if rate and ceiling and rate < _POOR * ceiling:
        of = f"{rate / ceiling:.0%} of memory's ceiling"
        return f"all alike and poor, at {of}: the access pattern, not the tile, is the problem"
    return "all alike: one fixed configuration saves the search"


def _calls(trace: Trace, tuning: Tuning) -> int | None:
    """Launches with the key's values outside this search, in the whole recording; None where shapes do not show it."""
    wanted = {f"{name}={value}" for name, value in tuning.key.items()}
    rows = [
        row
        for row in trace.shape_keys.to_pylist()
        if row["kernel"] == tuning.kernel and row["pid"] == tuning.pid and wanted <= set(row["key"].split())
    ]
    if not wanted or not rows:
        return None
    return max(sum(row["launches"] for row in rows) - sum(c["launches"] or 0 for c in tuning.candidates), 0)


def _kernels(searches: list[Tuning], told: list[Row], ranked: list[Row]) -> list[Row]:
    """What the searches of each kernel cost, what they won so far, and how much smaller the space could be."""
    found = []
    for kernel, mine in grouped(told, "kernel").items():
        saved = [row["saved_ns"] for row in mine if row["saved_ns"] is not None]
        calls = [row["calls"] for row in mine if row["calls"] is not None]
        cost = sum(row["wall_ns"] for row in mine)
        argument, first = growing([t for t in searches if t.kernel == kernel])
        found.append({
            "kernel": kernel,
            "tunings": len(mine),
            "keys": len({row["key"] for row in mine if row["key"]}) or None,
            "most_values_of": argument or None,
            "values": len(first) or None,
            "candidates": max(row["candidates"] for row in mine),
            "useful": _useful([row for row in ranked if row["kernel"] == kernel and row["time_ns"]]),
            "tuning_ns": cost,
            "calls": sum(calls) if calls else None,
            "saved_ns": sum(saved) if saved else None,
            "verdict": _worth(cost, sum(saved)) if saved else None,
            "basis": weakest(mine),
        })  # fmt: skip
    return sorted(found, key=lambda row: -row["tuning_ns"])


def _useful(timed: list[Row]) -> int | None:
    """Configurations that came within 5 % of the best of any search: the others could be left out."""
    searches = grouped(timed, "tuning").values()
    good = {row["config"] for own in searches for row in own if row["time_ns"] <= (1 + _NEAR) * own[0]["time_ns"]}
    return len(good - {None}) or None


def _worth(cost_ns: int, saved_ns: int) -> str:
    """Whether the searches have paid for themselves within the recording."""
    if saved_ns >= cost_ns:
        return "paid for itself"
    return "has not paid for itself against the first configuration, in this recording"
