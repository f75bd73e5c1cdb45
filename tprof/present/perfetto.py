"""A trace as trace-event JSON, which Perfetto and chrome://tracing open and tprof reads again.

Times are microseconds with three decimals, counted from the first event, so that they stay exact as doubles.
"""

from __future__ import annotations

import json
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

from tprof.align.calls import constant, is_kind
from tprof.align.ranges import process_of
from tprof.analyze.devices import device_label
from tprof.events import PURPOSES
from tprof.intervals import NONE
from tprof.model import Trace, codes, ints, nullable, numbers
from tprof.present.event_lines import lines, placed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow as pa

# Tracks that no operating system numbers: of devices, of a thread's phases, of what a recorder said of a thread.
_DEVICE, _PHASES, _RECORDER = 1 << 30, 1 << 30, 1 << 29
_SHARED: Final = 1 << 28  # in place of a pid that processes of two hosts have


def write(trace: Trace, phases: Mapping[str, pa.Table], out: IO[bytes]) -> None:
    """Write the whole trace.

    Args:
        trace: an aligned trace.
        phases: `thread_phases` and `device_phases` as `analyze.stretches` makes them; drawn as tracks of their own.
        out: a binary file.
    """
    pids, origin = _pids(trace), _first(trace)
    out.write(json.dumps(_head(trace, origin))[:-1].encode() + b', "traceEvents": [\n')
    for event in _names(trace, pids):
        out.write(json.dumps(event).encode() + b",\n")
    for data, letter, at in _tracks(trace, phases, pids):
        for block in lines(data, letter, origin, at):
            out.write(block)
    out.write(b'{"ph": "M", "name": "tprof_export", "pid": 0, "tid": 0, "args": {}}\n]}\n')


def _first(trace: Trace) -> int:
    """The first instant of any row, which becomes time zero: importers drop what is before it."""
    return min(
        (int(t.min()) for t in (ints(trace.host, "start_ns"), ints(trace.device, "start_ns")) if len(t)), default=0
    )


def _head(trace: Trace, origin: int) -> dict[str, Any]:
    devices = zip(_ordinals(trace).tolist(), trace.devices["name"].to_pylist(), strict=True)
    head: dict[str, Any] = {
        "schemaVersion": 1,
        "displayTimeUnit": "ns",
        "deviceProperties": [{"id": ordinal, "name": name} for ordinal, name in devices if name],
    }
    return head if trace.epoch_ns is None else head | {"baseTimeNanoseconds": trace.epoch_ns + origin}


def _ordinals(trace: Trace) -> np.ndarray:
    """Number of each device: its ordinal, unless two count alike."""
    found = ints(trace.devices, "ordinal")
    return found if len(np.unique(found)) == len(found) else np.arange(len(found))


def _pids(trace: Trace) -> np.ndarray:
    """Process number of each thread: its pid, unless processes of two hosts have it."""
    process, pid = process_of(trace), ints(trace.threads, "pid")
    pairs = np.unique(np.stack([pid, process], 1), axis=0)[:, 0]
    return np.where(np.isin(pid, pairs[1:][np.diff(pairs) == 0]), _SHARED + process, pid)


def _streams(device: pa.Table) -> np.ndarray:
    """Track of each device event: its stream, one for each purpose."""
    code, names = codes(device, "purpose")
    return ints(device, "stream") * len(PURPOSES) + np.array([*(PURPOSES.index(n) for n in names), 0])[code]


def _names(trace: Trace, pids: np.ndarray) -> Iterator[dict[str, Any]]:
    """Events that name processes and tracks."""
    programs = {(p["host"], p["pid"]): p["name"] for p in trace.processes.to_pylist()}
    for row, (thread, pid) in enumerate(zip(trace.threads.to_pylist(), pids.tolist(), strict=True)):
        program = programs.get((thread["host"], thread["pid"])) or "process"
        said = thread["name"] or f"thread {thread['tid']}"
        yield _name("process_name", pid, 0, program)
        yield _name("thread_name", pid, thread["tid"], said)
        yield _name("thread_name", pid, _PHASES + row, f"{said}: phases")
        yield _name("thread_name", pid, _RECORDER + row, f"{said}: recorded by tprof")
    for row, model in enumerate(trace.devices["name"].to_pylist()):
        yield _name("process_name", _DEVICE + row, 0, f"device {device_label(trace, row)} {model or ''}".strip())
        yield _name("thread_name", _DEVICE + row, _PHASES, "where its time went")
    pairs = np.stack([ints(trace.device, "device"), _streams(trace.device)], 1)
    for row, track in np.unique(pairs, axis=0).tolist():
        stream, purpose = divmod(track, len(PURPOSES))
        yield _name("thread_name", _DEVICE + row, track, f"stream {stream}: {PURPOSES[purpose]}")


def _name(kind: str, pid: int, tid: int, text: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": text}}


def _tracks(trace: Trace, phases: Mapping[str, pa.Table], pids: np.ndarray) -> Iterator[tuple[pa.Table, str, str]]:
    """Every table with its kind of event and the column of its time.

    Slices must nest on their track. Ranges that need not are drawn by their two ends, what tprof recorded beside what
    another profiler saw, each purpose of a stream apart.
    """
    host, device = _host(trace, pids), _device(trace)
    free, mark = is_kind(host, "startend", "request", "serve"), is_kind(host, "mark")
    yield host.filter(numbers(~(free | mark))), "X", "start_ns"
    yield host.filter(numbers(mark)), "i", "start_ns"
    yield host.filter(numbers(free)), "b", "start_ns"
    yield host.filter(numbers(free)), "e", "end_ns"
    yield device, "X", "start_ns"
    yield from _flows(trace, host, device)
    of_thread, of_device = phases["thread_phases"], phases["device_phases"]
    thread, on = ints(of_thread, "thread"), ints(of_device, "device")
    yield _phases(of_thread, pids[thread] if len(thread) else thread, _PHASES + thread), "X", "start_ns"
    yield _phases(of_device, _DEVICE + on, np.full(len(on), _PHASES)), "X", "start_ns"


def _host(trace: Trace, pids: np.ndarray) -> pa.Table:
    host, thread = trace.host, ints(trace.host, "thread")
    tid = np.where(is_kind(host, "cold", "launch"), _RECORDER + thread, ints(host, "tid"))
    linked = ints(trace.device, "launch")
    own = np.zeros(host.num_rows, bool)
    own[linked[linked != NONE]] = True
    # A launch is known by its row: ids of two processes may be alike.
    return placed(
        host,
        pids[thread] if len(thread) else thread,
        tid,
        linked=nullable(np.where(own, np.arange(len(own)) + 1, NONE)),
    )


def _device(trace: Trace) -> pa.Table:
    device, launch, on = trace.device, ints(trace.device, "launch"), ints(trace.device, "device")
    ordinal = _ordinals(trace)[on] if len(on) else on
    linked = nullable(np.where(launch == NONE, NONE, launch + 1))
    return placed(device, _DEVICE + on, _streams(device), linked=linked, ordinal=numbers(ordinal))


def _flows(trace: Trace, host: pa.Table, device: pa.Table) -> Iterator[tuple[pa.Table, str, str]]:
    """An arrow from each launch to what it enqueued."""
    rows = np.flatnonzero(ints(trace.device, "launch") != NONE)
    ends = device.take(numbers(rows)).select(["start_ns", "on_pid", "on_tid", "row"])
    begins = host.select(["start_ns", "on_pid", "on_tid"]).take(numbers(ints(trace.device, "launch")[rows]))
    begins = begins.append_column("row", ends["row"])
    for data, letter in ((begins, "s"), (ends, "f")):
        named = data.append_column("kind", constant(len(rows), "flow")).append_column(
            "name", constant(len(rows), "launch")
        )
        yield named, letter, "start_ns"


def _phases(data: pa.Table, pid: np.ndarray, tid: np.ndarray) -> pa.Table:
    """Phases as slices of that name."""
    if "row" in data.column_names:
        data = data.drop_columns(["row"])
    return placed(data, pid, tid, kind=constant(len(data), "phase"), name=data["phase"])
