"""Hypothesis strategies: small aligned traces in which everything may overlap everything, and windows over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from support.oracle import COLD, PURPOSES, DeviceEvent, HostEvent, Oracle, Span

from tprof.model import Trace, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

HORIZON = 30
THREADS = ((1, 11), (1, 12), (2, 21))  # (pid, tid)
DEVICES = 2
LAUNCHERS = ("cudaLaunchKernel", "cuLaunchKernelEx", "cudaGraphLaunch", "cudaMemcpyAsync", "cudaMemsetAsync")
OTHER_CALLS = (
    "cudaStreamSynchronize",
    "cudaDeviceSynchronize",
    "cudaMalloc",
    "cudaEventQuery",
    "cudaEventRecord",
    "cuModuleLoadData",
)
NAMED = {
    "op": ("aten::mm", "nccl:all_reduce", "c10d::allreduce_"),
    "python": ("model.py(3): forward",),
    "range": ("step", "nccl:ring"),
    "startend": ("phase",),
    "mark": ("mark",),
    "osrt": ("poll",),
    "overhead": ("Instrumentation",),
    "runtime": (*LAUNCHERS, *OTHER_CALLS),
    "driver": ("cuLaunchKernelEx", "cuModuleLoadData"),
}


@dataclass(frozen=True)
class Example:
    """One trace twice: as the product takes it, and as the oracle does."""

    trace: Trace = field(repr=False)
    oracle: Oracle
    requests: list[int]  # rows of `host`, by start


@st.composite
def _interval(draw: st.DrawFn, longest: int = 15) -> tuple[int, int]:
    start = draw(st.integers(0, HORIZON))
    return start, start + draw(st.sampled_from((0, 1, 1, 2, 3, 5, 8, longest)))


@st.composite
def _host_event(draw: st.DrawFn) -> HostEvent:
    start, end = draw(_interval())
    # Calls are what launches hang on: every other row is one.
    kind = draw(st.sampled_from(("runtime",) * 7 + tuple(NAMED)))
    return HostEvent(start, end, draw(st.integers(0, len(THREADS) - 1)), kind, draw(st.sampled_from(NAMED[kind])))


@st.composite
def _span(draw: st.DrawFn) -> Span:
    start, end = draw(_interval())
    phase = draw(st.sampled_from((*COLD, "framework", "sync")))
    return Span(
        start,
        max(end, start + 1),
        draw(st.integers(0, len(THREADS) - 1)),
        phase,
        draw(st.sampled_from(("recorded", "inferred"))),
    )


@st.composite
def _request(draw: st.DrawFn) -> HostEvent:
    start, end = draw(_interval(25))
    return HostEvent(start, end, draw(st.integers(0, len(THREADS) - 1)), "range", f"request#{start}")


@st.composite
def examples(draw: st.DrawFn, *, purposes: Sequence[str] = PURPOSES) -> Example:
    """A trace of up to two dozen events with launches, purposes and cold spans set directly."""
    host = draw(st.lists(_host_event(), max_size=9)) + draw(st.lists(_request(), max_size=2))
    launchers = [i for i, e in enumerate(host) if e.kind in ("runtime", "driver") and e.name in LAUNCHERS]
    device = []
    for row in range(draw(st.integers(0, 9))):
        start, end = draw(_interval())
        pid, _ = draw(st.sampled_from(THREADS))
        on = draw(st.integers(0, DEVICES - 1))
        launch = draw(st.sampled_from((None, *launchers, *launchers)))
        device.append(
            DeviceEvent(
                start, end, on, (pid, on, 1, draw(st.integers(7, 8))), launch, draw(st.sampled_from(purposes)), row
            )
        )
    spans = draw(st.lists(_span(), max_size=4))
    offset = draw(st.sampled_from((0, -20, 5_000_000_000)))
    return example(*_moved(host, device, spans, offset))


def _moved(
    host: list[HostEvent], device: list[DeviceEvent], spans: list[Span], by: int
) -> tuple[list[HostEvent], list[DeviceEvent], list[Span]]:
    return (
        [HostEvent(e.start + by, e.end + by, e.thread, e.kind, e.name) for e in host],
        [DeviceEvent(e.start + by, e.end + by, e.device, e.stream, e.launch, e.purpose, e.row) for e in device],
        [Span(e.start + by, e.end + by, e.thread, e.phase, e.basis) for e in spans],
    )


def example(host: list[HostEvent], device: list[DeviceEvent], spans: list[Span]) -> Example:
    """Both views of given events."""
    processes = [pid for pid, _ in THREADS]
    wanted = [i for i, e in enumerate(host) if e.kind == "range" and e.name.startswith("request")]
    requests = sorted(wanted, key=lambda i: host[i].start)
    return Example(as_trace(host, device, spans), Oracle(host, device, spans, processes), requests)


def as_trace(
    host: list[HostEvent],
    device: list[DeviceEvent],
    spans: list[Span],
    *,
    source: str = "generated",
    epoch_ns: int | None = None,
) -> Trace:
    """The product's form of plain events."""
    threads = {"host": [""] * len(THREADS), "pid": [p for p, _ in THREADS], "tid": [t for _, t in THREADS]}
    said = {"path": [source], "format": ["torch"], "rows_read": [0], "rows_dropped": [0], "epoch_ns": [epoch_ns]}
    return Trace(
        host=_host(host),
        device=_device(device),
        spans=_spans(spans),
        processes=table("processes", {"host": ["", ""], "pid": [1, 2]}),
        threads=table("threads", threads),
        devices=table("devices", {"host": [""] * DEVICES, "ordinal": list(range(DEVICES)), "source": [0] * DEVICES}),
        sources=table("sources", said),
        epoch_ns=epoch_ns,
    )


def _host(events: list[HostEvent]) -> pa.Table:
    columns = {
        "start_ns": [e.start for e in events],
        "end_ns": [e.end for e in events],
        "thread": [e.thread for e in events],
        "pid": [THREADS[e.thread][0] for e in events],
        "tid": [THREADS[e.thread][1] for e in events],
        "kind": [e.kind for e in events],
        "name": [e.name for e in events],
    }
    return table("host", columns, len(events))


def _device(events: list[DeviceEvent]) -> pa.Table:
    columns = {
        "start_ns": [e.start for e in events],
        "end_ns": [e.end for e in events],
        "device": [e.device for e in events],
        "pid": [e.stream[0] for e in events],
        "context": [e.stream[2] for e in events],
        "stream": [e.stream[3] for e in events],
        "kind": ["kernel"] * len(events),
        "name": [f"k{e.row}" for e in events],
        "launch": [e.launch for e in events],
        "purpose": [e.purpose for e in events],
        "purpose_basis": ["recorded"] * len(events),
    }
    return table("device", columns, len(events))


def _spans(spans: list[Span]) -> pa.Table:
    columns = {
        "start_ns": [e.start for e in spans],
        "end_ns": [e.end for e in spans],
        "thread": [e.thread for e in spans],
        "phase": [e.phase for e in spans],
        "basis": [e.basis for e in spans],
    }
    return table("spans", columns, len(spans))


@st.composite
def windows(draw: st.DrawFn, around: tuple[int, int]) -> tuple[int, int]:
    """A window that lies within, across or outside an extent."""
    low, high = around[0] - 10, around[1] + 10
    a, b = draw(st.integers(low, high)), draw(st.integers(low, high))
    return min(a, b), max(a, b)
