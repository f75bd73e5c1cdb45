"""Requests, ranges and marks: across threads, tasks, and out of order."""

from __future__ import annotations

import asyncio
import threading

import pytest
from support import rundir

from tprof.record import annotate, ready, request, trace


def _run(tmp_path):
    return rundir.only(tmp_path / "run")


def test_without_a_recording_nothing_happens():
    with request("generate", id="r1") as served, annotate("prefill"):
        ready()
        assert served.span_id == 0
        with served.serve():
            pass


def test_requests_nest_ranges(tmp_path):
    with trace(tmp_path / "run", nvtx=False), request("generate", id=7):
        with annotate("prefill"), annotate("attention"):
            pass
        ready()
    process = _run(tmp_path)
    (served,) = process.kind("request")
    outer, inner = process.kind("range")
    assert served["attrs"]["request_id"] == "7"
    assert (outer["parent"], inner["parent"]) == (served["id"], outer["id"])
    assert {outer["request"], inner["request"]} == {served["id"]}
    assert [m["name"] for m in process.of("mark")] == ["ready"]


def test_tasks_of_one_thread_do_not_mix(tmp_path):
    async def answer(number):
        with request("generate", id=f"r{number}"):
            await asyncio.sleep(0.01 * (3 - number))
            with annotate(f"step {number}"):
                await asyncio.sleep(0.01)

    async def main():
        await asyncio.gather(*(answer(number) for number in range(3)))

    with trace(tmp_path / "run", nvtx=False):
        asyncio.run(main())
    process = _run(tmp_path)
    ids = {s["id"]: s["attrs"]["request_id"] for s in process.kind("request")}
    assert sorted(ids.values()) == ["r0", "r1", "r2"]
    assert {s["name"]: ids[s["parent"]] for s in process.kind("range")} == {f"step {n}": f"r{n}" for n in range(3)}
    assert all(s["ok"] for s in process.spans.values())


def test_a_server_starts_serves_and_ends_on_different_threads(tmp_path):
    def work(served):
        with served.serve(), annotate("decode"):
            pass

    with trace(tmp_path / "run", nvtx=False):
        served = request("generate", id="r1").start()
        threads = [threading.Thread(target=work, args=(served,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        with annotate("between requests"):
            pass
        served.end()
    process = _run(tmp_path)
    (whole,) = process.kind("request")
    serving = process.kind("serve")
    assert len({s["tid"] for s in serving} - {whole["tid"]}) == 2
    assert {s["request"] for s in serving} == {whole["id"]}
    assert [s["request"] for s in process.kind("range")] == [whole["id"], whole["id"], 0]
    assert all(whole["t_ns"] <= s["t_ns"] <= s["end"] <= whole["end"] for s in serving)


def test_decorators_of_functions_and_coroutines(tmp_path):
    @request("plain")
    def plain(x):
        return x + 1

    @annotate("awaited")
    async def awaited(x):
        await asyncio.sleep(0)
        return x + 1

    @trace(tmp_path / "run", nvtx=False)
    async def main():
        return plain(1) + await awaited(2)

    assert asyncio.run(main()) == 5
    process = _run(tmp_path)
    assert [(s["kind"], s["name"]) for s in process.spans.values()] == [
        ("request", "plain"),
        ("serve", "plain"),
        ("range", "awaited"),
    ]


def test_an_exception_is_noted_and_passed_on(tmp_path):
    with trace(tmp_path / "run", nvtx=False), pytest.raises(KeyError), request("generate"):
        raise KeyError("theirs")
    (whole,) = _run(tmp_path).kind("request")
    assert (whole["ok"], whole["error"]) == (False, "KeyError: 'theirs'")


def test_a_range_left_in_another_context_does_no_harm(tmp_path):
    def steps():
        with annotate("generator"):
            yield

    with trace(tmp_path / "run", nvtx=False):
        generator = steps()
        import contextvars

        contextvars.copy_context().run(next, generator)
        generator.close()
    assert [s["ok"] for s in _run(tmp_path).kind("range")] == [False]


def test_what_is_open_when_the_recording_ends_has_no_end(tmp_path):
    with trace(tmp_path / "run", nvtx=False):
        served = request("generate").start()
    served.end()
    (whole,) = _run(tmp_path).kind("request")
    assert whole["end"] is None
