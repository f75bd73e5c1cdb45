"""Device time: span, busy, idle, lead, tail, sum, overlaps, unlinked events, by purpose, by phase, by stream."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from tprof.analyze.attribution import BUSY, IDLE, LEAD, TAIL, WHERE, Attribution, Pieces
from tprof.analyze.busy import DeviceEvents, stream_numbers
from tprof.analyze.streams import stream_figures
from tprof.analyze.timeline import basis_of, phase_of
from tprof.events import BASES, PHASES, PURPOSES
from tprof.intervals import NONE, clip, total, touches
from tprof.model import Trace, codes, ints

if TYPE_CHECKING:
    from tprof.analyze.options import Options
    from tprof.analyze.result import Row

Window = tuple[int, int]


def device_label(trace: Trace, device: int) -> str:
    """A short name that tells a device from every other of the trace."""
    row = trace.devices.slice(device, 1).to_pylist()[0]
    label = f"{row['ordinal']}"
    if len({p for p in trace.devices["pid"].to_pylist() if p is not None}) > 1 and row["pid"] is not None:
        label = f"{row['pid']}:{label}"
    return f"{row['host']}/{label}" if len(set(trace.devices["host"].to_pylist())) > 1 else label


def process_label(pid: int, rank: int | None) -> str:
    """A process by its rank, where it has one."""
    return f"process {pid}" if rank is None else f"rank {rank}"


def chosen_devices(attribution: Attribution, options: Options) -> list[int]:
    """Devices with work that the options ask for; a glob matches a label or a model name, `--rank` a process."""
    trace = attribution.trace
    ranks = {(p["host"], p["pid"]): p["rank"] for p in trace.processes.to_pylist()}
    found = []
    for device in attribution.events:
        row = trace.devices.slice(device, 1).to_pylist()[0]
        names = (device_label(trace, device), str(row["ordinal"]), row["name"] or "")
        if options.devices and not any(fnmatchcase(n, g) for n in names for g in options.devices):
            continue
        if options.ranks and ranks.get((row["host"], row["pid"])) not in options.ranks:
            continue
        found.append(device)
    return found


def device_rows(attribution: Attribution, options: Options, window: Window) -> list[Row]:
    """One row per device, as `summary --format json` shows it."""
    return [_device_row(attribution, device, window) for device in chosen_devices(attribution, options)]


def _device_row(attribution: Attribution, device: int, window: Window) -> Row:
    trace, events, pieces = attribution.trace, attribution.events[device], attribution.pieces(device)
    length = pieces.clipped(*window)
    by_where = {w: int(length[pieces.where == w].sum()) for w in (BUSY, IDLE, LEAD, TAIL)}
    inside = touches(events.start, events.end, *window)
    streams = _streams(attribution, events, window)
    return {
        "device": device_label(trace, device),
        "name": trace.devices["name"][device].as_py(),
        "events": int(inside.sum()),
        "span_ns": by_where[BUSY] + by_where[IDLE],
        "busy_ns": by_where[BUSY],
        "idle_ns": by_where[IDLE],
        "sum_ns": total(*clip(events.start, events.end, *window)),
        "lead_ns": by_where[LEAD],
        "tail_ns": by_where[TAIL],
        "overlaps": sum(s["overlaps"] for s in streams),
        "unlinked": int((events.launch[inside] == NONE).sum()),
        "busy_by_purpose": busy_by_purpose(pieces, length),
        "basis_by_purpose": _purpose_basis(trace, events),
        "idle_by_phase": idle_by_phase(pieces, length, IDLE),
        "inferred_ns": int(length[(pieces.where != BUSY) & (basis_of(pieces.value) == BASES.index("inferred"))].sum()),
        "wall_by_phase": wall_by_phase(pieces, length),
        "streams": streams,
    }


def busy_by_purpose(pieces: Pieces, length: np.ndarray) -> dict[str, int]:
    """Nanoseconds of each purpose; they sum to busy."""
    busy = pieces.where == BUSY
    spent = np.bincount(pieces.value[busy], length[busy], len(PURPOSES)).astype(np.int64)
    return {purpose: int(ns) for purpose, ns in zip(PURPOSES, spent, strict=True) if ns}


def idle_by_phase(pieces: Pieces, length: np.ndarray, where: int) -> dict[str, int]:
    """Nanoseconds of each phase of one kind of idle; they sum to it. Largest first."""
    at = pieces.where == where
    spent = np.bincount(phase_of(pieces.value[at]), length[at], len(PHASES)).astype(np.int64)
    order = np.argsort(-spent, kind="stable")
    return {PHASES[i]: int(spent[i]) for i in order if spent[i]}


def wall_by_phase(pieces: Pieces, length: np.ndarray) -> dict[str, int]:
    """Nanoseconds of `busy.PURPOSE`, `idle.PHASE`, `lead.PHASE`, `tail.PHASE`; they sum to the window."""
    found = {f"busy.{purpose}": ns for purpose, ns in busy_by_purpose(pieces, length).items()}
    for where in (IDLE, LEAD, TAIL):
        found |= {f"{WHERE[where]}.{phase}": ns for phase, ns in idle_by_phase(pieces, length, where).items()}
    return found


def _purpose_basis(trace: Trace, events: DeviceEvents) -> dict[str, str]:
    """How the purpose of a device's events is known; inferred where that holds for any of them."""
    code, names = codes(trace.device, "purpose_basis")
    inferred = code[events.row] == (names.index("inferred") if "inferred" in names else len(names))
    used = np.unique(events.purpose).tolist()
    return {PURPOSES[p]: "inferred" if inferred[events.purpose == p].any() else "recorded" for p in used}


def _streams(attribution: Attribution, events: DeviceEvents, window: Window) -> list[Row]:
    start = ints(attribution.trace.host, "start_ns")
    launched = np.where(events.launch == NONE, NONE, start[events.launch] if len(start) else NONE)
    figures = stream_figures(events, launched, window)
    _, keys = stream_numbers(attribution.trace)
    return [
        {"stream": keys[n][3], "pid": keys[n][0], "context": _known(keys[n][2]), **f.row()} for n, f in figures.items()
    ]


def _known(value: int) -> int | None:
    return None if value == NONE else value
