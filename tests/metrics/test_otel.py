"""Spans in OpenTelemetry: what is cold is a child of the request that pays for it."""

from __future__ import annotations

import asyncio
import threading

import pytest

import tprof

sdk = pytest.importorskip("opentelemetry.sdk.trace")


@pytest.fixture
def tracing():
    """(tracer, finish): what arrived in memory as {name: [(parent's name, attributes)]}."""
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    from tprof.metrics import OpenTelemetry

    exporter, provider = InMemorySpanExporter(), sdk.TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    ours = OpenTelemetry(provider)

    def finish():
        spans = exporter.get_finished_spans()
        names = {span.context.span_id: span.name for span in spans}
        found = {}
        for span in spans:
            parent = names[span.parent.span_id] if span.parent else None
            found.setdefault(span.name, []).append((parent, dict(span.attributes), span))
        return found

    yield provider.get_tracer("test"), finish
    ours.close()


def test_cold_spans_hang_beneath_the_request_and_each_other(tracing, add, pick):
    tracer, finish = tracing
    with tracer.start_as_current_span("GET /generate"), tprof.request("generate", id="r1"):
        add(1024)
        with tracer.start_as_current_span("decode"):
            pick(1024)
        add(1024)
    found = finish()
    assert [(parent, a["tprof.request_id"]) for parent, a, _ in found["generate"]] == [("GET /generate", "r1")]
    assert [(parent, a["tprof.disk_hit"]) for parent, a, _ in found["compile add"]] == [("generate", False)]
    assert [parent for parent, *_ in found["load add"]] == ["generate"]
    assert [parent for parent, *_ in found["autotune pick"]] == ["decode"]
    assert [parent for parent, *_ in found["candidate of pick"]] == ["autotune pick"] * 2
    assert [parent for parent, *_ in found["compile pick"]] == ["candidate of pick"] * 2
    search, tuned = found["autotune pick"][0][1:]
    assert 0 < search["tprof.autotune_s"] < search["tprof.compile_s"] < (tuned.end_time - tuned.start_time) / 1e9
    assert len({span.context.trace_id for rows in found.values() for *_, span in rows}) == 1
    assert search["tprof.after_ready"] is False


def test_tasks_and_threads_pay_for_their_own(tracing, add, kernels):
    _, finish = tracing

    def work(request, n):
        with request.serve():
            add(n)

    async def chat():
        requests = [tprof.request(f"request {n}").start() for n in (1024, 1000)]
        await asyncio.gather(*(asyncio.to_thread(work, r, n) for r, n in zip(requests, (1024, 1000), strict=True)))
        for request in requests:
            request.end()

    asyncio.run(chat())
    assert sorted(parent for parent, *_ in finish()["compile add"]) == ["request 1000", "request 1024"]
    kernels.forget(kernels.add)
    thread = threading.Thread(target=add, args=(1024,))
    thread.start()
    thread.join()
    assert [parent for parent, a, _ in finish()["compile add"] if a["tprof.disk_hit"]] == [None]


def test_a_failure_is_an_error(tracing, kernels):
    _, finish = tracing
    import torch

    tuner = kernels.tuned((128, 0, 4), (1024, 1, 4))  # the second needs more shared memory than there is
    with tprof.request("generate"):
        tuner[lambda meta: (1024 // meta["B"],)](torch.ones(1024), torch.empty(1024), 1024)
    failed = [span for *_, span in finish()["load pick"] if not span.status.is_ok]
    assert ["OutOfResources" in span.status.description for span in failed] == [True]


def test_a_request_left_in_another_task_leaves_no_context(tracing):
    from opentelemetry import trace

    async def outer():
        request = tprof.request("generate")
        await asyncio.create_task(_enter(request))
        request.__exit__(None, None, None)
        return trace.get_current_span()

    async def _enter(request):
        request.__enter__()

    assert asyncio.run(outer()) is trace.INVALID_SPAN
    assert set(tracing[1]()) == {"generate"}
