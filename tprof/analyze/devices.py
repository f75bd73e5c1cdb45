"""Device time: span, busy, idle, lead, tail, sum, overlaps, unlinked events, by purpose, by phase, by stream."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.ranges import looked_up
from tprof.analyze.attribution import BUSY, IDLE, LEAD, TAIL, WHERE, Attribution, Pieces
from tprof.analyze.busy import DeviceEvents, stream_numbers
from tprof.analyze.rows import labelled
from tprof.analyze.timeline import basis_of, phase_of
from tprof.events import BASES, PHASES, PURPOSES
from tprof.intervals import NONE, clip, covered, summed, total, touches
from tprof.model import Trace, ints

if TYPE_CHECKING:
    from tprof.analyze.options import Options
    from tprof.analyze.result import Row

Window = tuple[int, int]
_KERNEL_WAIT_NS: Final = 30_000


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


def ranks_of(trace: Trace) -> dict[tuple[str, int], int | None]:
    """Rank of each process in a distributed job, by its host and pid."""
    return {(p["host"], p["pid"]): p["rank"] for p in trace.processes.to_pylist()}


def chosen_devices(attribution: Attribution, options: Options) -> list[int]:
    """Devices with work that the options ask for; a glob matches a label or a model name, `--rank` a process."""
    trace = attribution.trace
    ranks = ranks_of(trace) if options.ranks else {}
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
    parts = {WHERE[where]: _split(pieces, length, where) for where in (BUSY, IDLE, LEAD, TAIL)}
    ns = {where: sum(own.values()) for where, own in parts.items()}
    inside = touches(events.start, events.end, *window)
    streams = _streams(attribution, events, window)
    return {
        "device": device_label(trace, device),
        "name": trace.devices["name"][device].as_py(),
        "events": int(inside.sum()),
        "span_ns": ns["busy"] + ns["idle"],
        "busy_ns": ns["busy"],
        "idle_ns": ns["idle"],
        "sum_ns": total(*clip(events.start, events.end, *window)),
        "lead_ns": ns["lead"],
        "tail_ns": ns["tail"],
        "overlaps": sum(s["overlaps"] for s in streams),
        "unlinked": int((events.launch[inside] == NONE).sum()),
        "busy_by_purpose": parts["busy"],
        "basis_by_purpose": _purpose_basis(trace, events),
        "idle_by_phase": parts["idle"],
        "inferred_ns": int(length[(pieces.where != BUSY) & (basis_of(pieces.value) == BASES.index("inferred"))].sum()),
        "wall_by_phase": {f"{where}.{name}": ns for where, own in parts.items() for name, ns in own.items()},
        "streams": streams,
    }


def _split(pieces: Pieces, length: np.ndarray, where: int) -> dict[str, int]:
    """Nanoseconds of busy time by purpose, in their order; of idle time, lead or tail by phase, largest first."""
    at = pieces.where == where
    names, value = (PURPOSES, pieces.value[at]) if where == BUSY else (PHASES, phase_of(pieces.value[at]))
    spent = summed(value, length[at], len(names))
    order = range(len(names)) if where == BUSY else np.argsort(-spent, kind="stable")
    return {names[i]: int(spent[i]) for i in order if spent[i]}


def _purpose_basis(trace: Trace, events: DeviceEvents) -> dict[str, str]:
    """How the purpose of a device's events is known; inferred where that holds for any of them."""
    inferred = labelled(trace.device, "purpose_basis", {"inferred"}, events.row)
    used = np.unique(events.purpose).tolist()
    return {PURPOSES[p]: "inferred" if inferred[events.purpose == p].any() else "recorded" for p in used}


def _streams(attribution: Attribution, events: DeviceEvents, window: Window) -> list[Row]:
    """Per stream of a device: events, busy, idle, overlaps, and HTA's own split of its idle time, for comparison."""
    start = ints(attribution.trace.host, "start_ns")
    called = looked_up(start, events.launch)
    _, keys = stream_numbers(attribution.trace)
    return [
        {"stream": keys[n][3], "pid": keys[n][0], "context": None if keys[n][2] == NONE else keys[n][2]}
        | _stream(events, called, np.flatnonzero(events.stream == n), window)
        for n in np.unique(events.stream).tolist()
    ]


def _stream(events: DeviceEvents, called: np.ndarray, at: np.ndarray, window: Window) -> Row:
    """Figures of the events `at`, of one stream.

    HTA (HolisticTraceAnalysis 0.5): the gap before a kernel is `host_wait` if its launch began after the previous
    kernel ended, else `kernel_wait` if it is shorter than 30 us, else `other`. tprof adds `unlinked`: no launch was
    recorded.
    """
    start, end = events.start[at], events.end[at]
    reach = np.maximum.accumulate(end)[:-1]
    gap = start[1:] > reach
    before, after = reach[gap], start[1:][gap]
    low, high = clip(before, after, *window)
    unlinked = events.launch[at][1:][gap] == NONE
    host = ~unlinked & (called[at][1:][gap] > before)
    kernel = ~unlinked & ~host & (after - before < _KERNEL_WAIT_NS)
    rest = ~(unlinked | host | kernel)
    waits = {"host_wait_ns": host, "kernel_wait_ns": kernel, "other_ns": rest, "unlinked_ns": unlinked}
    inside = touches(start, end, *window)
    return {
        "events": int(inside.sum()),
        "busy_ns": covered(*clip(start, end, *window)),
        "idle_ns": total(low, high),
        "overlaps": int((start[1:] < reach)[inside[1:]].sum()),
        "hta_wait": {name: total(low[which], high[which]) for name, which in waits.items()},
    }
