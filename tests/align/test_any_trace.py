"""`align` on traces of arbitrary calls, compiler marks, loads and ranges: what it fills obeys the schema's promises."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.generate import THREADS, as_trace
from support.oracle import COLD, DeviceEvent, HostEvent, Oracle, Span

from tprof.align import AlignOptions, align
from tprof.analyze import Attribution, Options, cold, idle, kernels, requests, summarize
from tprof.model import ints

if TYPE_CHECKING:
    from tprof.model import Trace

MS = 1_000_000
CALLS = (
    "cudaLaunchKernel",
    "cuLaunchKernelEx",
    "cudaGraphLaunch",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
    "cudaDeviceSynchronize",
    "cudaEventRecordWithFlags",
    "cudaEventRecordWithFlags",
    "cudaEventQuery",
    "cudaEventDestroy",
    "cuModuleLoadData",
    "cuModuleLoad",
    "cuLibraryLoadData",
    "cudaStreamBeginCapture",
    "cudaStreamEndCapture",
    "cudaGraphInstantiate",
    "cudaMalloc",
    "cuInit",
)
NAMED = {
    "op": ("aten::mm",),
    "range": ("request#0", "warm", "tune", "dynamo_data: compile_id=0/0", "## Call CompiledFxGraph f0"),
    "startend": ("request#1",),
    "osrt": ("posix_spawn", "waitpid", "read", "pipe2"),
    "overhead": ("Lazy Function Loading",),
    "python": ("triton/compiler/compiler.py(240): compile", "model.py(1): forward"),
}
KERNELS = ("matmul", "triton_per_fused_add_0", "void at::native::FillFunctor<int>(int)", "nvjet_tst", "Memset (Device)")
PHASES = AlignOptions({"tune*": "autotune", "warm*": "warmup", "model*": "framework"})


@st.composite
def raw_traces(draw: st.DrawFn) -> Trace:
    """Calls in some order on three threads, up to 200 ms apart, with device events that name their correlation."""
    host: list[HostEvent] = []
    correlation: list[int | None] = []
    now = 0
    for _ in range(draw(st.integers(0, 24))):
        thread = draw(st.sampled_from((0, 0, 0, 1, 2)))
        now += draw(st.sampled_from((1, 3, 5, MS, 30 * MS, 250 * MS)))
        kind = draw(st.sampled_from(("call",) * 6 + tuple(NAMED)))
        name = draw(st.sampled_from(CALLS if kind == "call" else NAMED[kind]))
        length = draw(st.sampled_from((0, 1, 4, MS, 40 * MS)))
        host.append(HostEvent(now, now + length, thread, "runtime" if kind == "call" else kind, name))
        correlation.append(draw(st.integers(1, 12)) if kind == "call" else None)
    device = [
        DeviceEvent(
            start,
            start + draw(st.sampled_from((0, 2, 7, 5 * MS))),
            0,
            (draw(st.sampled_from((1, 2))), 0, 1, 7),
            None,
            "",
            row,
        )
        for row, start in enumerate(draw(st.lists(st.integers(0, now + 10), max_size=12)))
    ]
    trace = as_trace(host, device, [])
    table = trace.device
    wanted = [draw(st.sampled_from((None, *range(1, 13)))) for _ in device]
    names = [draw(st.sampled_from(KERNELS)) for _ in device]
    for column, values in (("correlation", wanted), ("name", names), ("purpose", [None] * len(device))):
        index = table.schema.get_field_index(column)
        table = table.set_column(index, table.schema.field(column), _array(values, table.schema.field(column).type))
    hosts, index = trace.host, trace.host.schema.get_field_index("correlation")
    hosts = hosts.set_column(
        index, hosts.schema.field("correlation"), _array(correlation, hosts.schema.field("correlation").type)
    )
    return replace(trace, device=table, host=hosts)


def _array(values: list[object], kind: object) -> object:
    import pyarrow as pa

    return (
        pa.array(values, pa.string()).dictionary_encode().cast(kind)
        if pa.types.is_dictionary(kind)
        else pa.array(values, kind)
    )


def oracle_of(trace: Trace) -> Oracle:
    """An aligned trace as the oracle takes it."""
    host = [HostEvent(r["start_ns"], r["end_ns"], r["thread"], r["kind"], r["name"]) for r in trace.host.to_pylist()]
    device = [
        DeviceEvent(
            r["start_ns"],
            r["end_ns"],
            r["device"],
            (r["pid"], r["device"], r["context"], r["stream"]),
            r["launch"],
            r["purpose"],
            i,
        )
        for i, r in enumerate(trace.device.to_pylist())
    ]
    spans = [Span(r["start_ns"], r["end_ns"], r["thread"], r["phase"], r["basis"]) for r in trace.spans.to_pylist()]
    return Oracle(host, device, spans, [pid for pid, _ in THREADS])


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(raw_traces(), st.sampled_from((AlignOptions(), PHASES)))
def test_figures_of_an_aligned_trace_equal_the_oracle(raw: Trace, options: AlignOptions) -> None:
    trace = align(raw, options)
    oracle, attribution = oracle_of(trace), Attribution(trace)
    rows = summarize(attribution, Options()).to_dict()["devices"]
    for row, device in zip(rows, oracle.devices(), strict=True):
        assert row["wall_by_phase"] == oracle.figures(device, *oracle.extent).wall()
        assert sum(row["wall_by_phase"].values()) == oracle.extent[1] - oracle.extent[0]
    for row in requests(attribution, Options()).to_dict()["requests"]:
        assert sum(row["phases"].values()) == row["wall_ns"]
    for question in (idle, cold, kernels):
        question(attribution, Options()).to_dict()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(raw_traces(), st.sampled_from((AlignOptions(), PHASES)))
def test_what_align_fills_is_sound(raw: Trace, options: AlignOptions) -> None:
    trace = align(raw, options)
    spans = sorted((r["thread"], r["start_ns"], r["end_ns"]) for r in trace.spans.to_pylist() if r["phase"] in COLD)
    assert all(start < end for _, start, end in spans)
    assert all(a[0] != b[0] or a[2] <= b[1] for a, b in pairwise(spans))
    host, device = trace.host.to_pylist(), trace.device.to_pylist()
    for event in device:
        assert event["purpose"] is not None
        assert event["path"] is not None
        if event["launch"] is not None:
            launch = host[event["launch"]]
            assert (launch["pid"], launch["correlation"]) == (event["pid"], event["correlation"])
    for event in host:
        if event["parent"] is not None:
            above = host[event["parent"]]
            assert above["thread"] == event["thread"]
            # A call is as long as the device API takes; what it began in may be over before.
            end = event["start_ns"] if event["kind"] == "runtime" else event["end_ns"]
            assert above["start_ns"] <= event["start_ns"] <= end <= above["end_ns"]
    assert (ints(trace.compiles, "candidate") < trace.candidates.num_rows).all()
    assert ints(raw.host, "start_ns").tolist() == ints(trace.host, "start_ns").tolist()


@pytest.mark.parametrize(
    "host", [[], [HostEvent(0, 5, 0, "runtime", "cudaLaunchKernel"), HostEvent(6, 9, 0, "runtime", "cuModuleLoadData")]]
)
def test_calls_without_device_events_and_device_events_without_calls(host: list[HostEvent]) -> None:
    for device in ([], [DeviceEvent(3, 4, 0, (1, 0, 1, 7), None, "", 0)]):
        trace = align(as_trace(host, device, []))
        assert len(summarize(Attribution(trace), Options()).to_dict()["devices"]) == len(device)
