"""Why each device was idle: its idle time, lead and tail by phase, and the longest gaps with what ended them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tprof.analyze.attribution import BUSY, IDLE, LEAD, TAIL, WHERE, Attribution, Pieces
from tprof.analyze.cold import compile_includes
from tprof.analyze.devices import Window, chosen_devices, device_label
from tprof.analyze.first_uses import thread_label
from tprof.analyze.gap_lengths import length_rows
from tprof.analyze.result import Result, Row, source_rows
from tprof.analyze.timeline import basis_of, phase_of
from tprof.events import BASES, PHASES
from tprof.intervals import NONE, summed
from tprof.model import codes, distinct

if TYPE_CHECKING:
    from tprof.analyze.options import Options

_LONGEST = 10  # gaps that are listed if the user does not say how many


def idle(attribution: Attribution, options: Options) -> Result:
    """Idle time of each device by phase and basis, how long its gaps are, and the longest of them."""
    trace, window = attribution.trace, options.window or attribution.extent
    devices, phases, gaps, lengths = [], [], [], []
    for device in chosen_devices(attribution, options):
        pieces = attribution.pieces(device)
        length = pieces.clipped(*window)
        rows = _phases(pieces, length, window)
        label = {"device": device_label(trace, device), "name": trace.devices["name"][device].as_py()}
        devices.append(
            {
                **label,
                **{f"{WHERE[w]}_ns": int(length[pieces.where == w].sum()) for w in (IDLE, LEAD, TAIL)},
                "phases": rows,
            }
        )
        phases += [{"device": label["device"], **row} for row in rows]
        lengths += [{"device": label["device"], **row} for row in length_rows(pieces, length)]
        gaps += [
            {"device": label["device"], **row} for row in _gaps(attribution, pieces, window, options.top or _LONGEST)
        ]
    payload = {
        "window": window_row(window),
        "devices": devices,
        "lengths": lengths,
        "gaps": gaps,
        "compile_includes": compile_includes(trace, window),
    }
    flat = [{k: v for k, v in g.items() if k != "phases"} for g in gaps]
    tables = {"phases": phases, "lengths": lengths, "gaps": flat}
    return Result("idle", tables, payload, trace.notes, source_rows(trace))


def window_row(window: Window) -> Row:
    """The window as the JSON shows it."""
    return {"start_ns": window[0], "end_ns": window[1], "wall_ns": window[1] - window[0]}


def _phases(pieces: Pieces, length: np.ndarray, window: Window) -> list[Row]:
    """One row per (lead, idle or tail; phase; basis), in that order and by size."""
    wall = max(window[1] - window[0], 1)
    rows = []
    for where in (LEAD, IDLE, TAIL):
        at = (pieces.where == where) & (length > 0)
        whole = int(length[at].sum())
        for value in distinct(pieces.value[at]):
            mine = at & (pieces.value == value)
            ns = int(length[mine].sum())
            rows.append({
                "where": WHERE[where],
                "phase": PHASES[int(phase_of(value))],
                "basis": BASES[int(basis_of(value))],
                "total_ns": ns,
                "gaps": len(distinct(pieces.gap[mine])),
                "of_where_share": ns / whole,
                "of_wall_share": ns / wall,
            })  # fmt: skip
    return sorted(rows, key=lambda row: (WHERE.index(row["where"]) != LEAD, row["where"], -row["total_ns"]))


def _gaps(attribution: Attribution, pieces: Pieces, window: Window, top: int) -> list[Row]:
    """The longest gaps inside the window: their phases, and the event that ended each."""
    trace, length = attribution.trace, pieces.clipped(*window)
    name, names = codes(trace.device, "name")
    rest = (pieces.where != BUSY) & (length > 0)
    if not rest.any():
        return []
    whole = summed(pieces.gap[rest], length[rest])
    by_gap = np.flatnonzero(rest)
    by_gap = by_gap[np.argsort(pieces.gap[by_gap], kind="stable")]
    number = pieces.gap[by_gap]
    rows = []
    for gap in np.argsort(-whole, kind="stable")[:top].tolist():
        mine = by_gap[slice(*np.searchsorted(number, (gap, gap + 1)))]
        if not len(mine):
            continue
        spent = summed(phase_of(pieces.value[mine]), length[mine], len(PHASES))
        by_phase = {PHASES[i]: int(spent[i]) for i in np.argsort(-spent, kind="stable") if spent[i]}
        first, event, thread = int(mine[0]), int(pieces.row[gap]), int(pieces.thread[gap])
        largest = pieces.value[mine[np.argmax(length[mine])]]
        rows.append({
            "at_ns": int(pieces.start[first]) - attribution.extent[0],
            "start_ns": max(int(pieces.start[first]), window[0]),
            "end_ns": min(int(pieces.end[mine[-1]]), window[1]),
            "gap_ns": int(whole[gap]),
            "where": WHERE[int(pieces.where[first])],
            "phase": next(iter(by_phase)),
            "basis": BASES[int(basis_of(largest))],
            "ended_by": names[name[event]] if event != NONE else None,
            "thread": thread_label(trace, thread) if thread != NONE else None,
            "phases": by_phase,
        })  # fmt: skip
    return rows
