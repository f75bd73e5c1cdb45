"""A run's own journal and what a profiler saw of the same run meet on one clock, launch by launch."""

from __future__ import annotations

import json

import pytest
from support.runs import Writer, cold_request

import tprof
from tprof.model import ints


def torch_trace(folder, offset_ns, *, beacons=(0, 20_000), pid=100, late=(300, 500)):
    """What torch.profiler would write of `cold_request` on a clock that is ahead by `offset_ns`."""

    def event(cat, name, start, end, tid=1, **args):
        ts, dur = (start + offset_ns) / 1000, (end - start) / 1000
        return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}

    events = [
        event("user_annotation", f"tprof::clock:{t}:{t}", t + delay, t + delay + 10)
        for t, delay in zip(beacons, late, strict=True)
    ]
    for i, start in enumerate((9_110, 9_510)):
        events.append(event("cpu_op", "tprof::launch:mm#1", start - 5, start + 60))
        events.append(event("cuda_driver", "cuLaunchKernelEx", start, start + 50, correlation=i + 1))
        where = {"device": 0, "context": 1, "stream": 7, "correlation": i + 1}
        events.append(event("kernel", "mm", start + 200, start + 300, tid=7, **where))
    path = folder / f"process-{pid}.torch.json"
    path.write_text(json.dumps({"traceEvents": events, "baseTimeNanoseconds": 0}))


@pytest.mark.parametrize("offset", [0, 5_000_000_000, -3_000])
def test_a_shifted_clock_is_found_by_the_beacons(tmp_path, offset):
    run = cold_request().write(tmp_path / "run")
    torch_trace(run, offset + 1_000_000)  # torch's own clock never begins before its zero
    trace = tprof.load(run)
    (source,) = [s for s in trace.sources.to_pylist() if s["format"] == "torch"]
    assert source["clock_offset_ns"] == offset + 1_000_000 + 300
    assert source["clock_error_ns"] == 100
    assert ints(trace.device, "start_ns").tolist() == [9_310 - 300, 9_710 - 300]


def test_device_events_meet_the_recorded_launch_and_its_shape(tmp_path):
    run = cold_request().write(tmp_path / "run")
    torch_trace(run, 0, late=(0, 0))
    trace = tprof.load(run)
    host = trace.host.to_pylist()
    calls = [host[row] for row in ints(trace.device, "launch")]
    assert [c["shape_key"] for c in calls] == ["grid 8 x float32[1024] n=1024"] * 2
    assert [host[c["request"]]["name"] for c in calls] == ["generate"] * 2
    assert not [r for r in host if r["name"].startswith("tprof::")]
    assert trace.threads.num_rows == 1


def test_without_beacons_the_wall_clock_aligns_and_a_note_says_so(tmp_path):
    run = cold_request().write(tmp_path / "run")
    torch_trace(run, 0, beacons=(), late=())
    trace = tprof.load(run)
    assert [n.code for n in trace.notes if n.code == "no-beacons"] == ["no-beacons"]


def test_a_recorded_candidate_makes_its_launches_tuning(tmp_path):
    w = Writer()
    w.span("candidate", "autotune", "mm", 9_000, 9_400, text="BM: 32", config={"BM": 32}, done={"timings_ms": [1.0]})
    run = w.write(tmp_path / "run")
    torch_trace(run, 0, late=(0, 0))
    trace = tprof.load(run)
    assert trace.device["purpose"].to_pylist() == ["tuning", "work"]
    assert trace.device["purpose_basis"].to_pylist()[0] == "recorded"
    assert trace.candidates["device_ns"].to_pylist() == [100]


def test_recorded_phases_sum_to_the_wall_and_nothing_is_inferred(tmp_path):
    run = cold_request().write(tmp_path / "run")
    torch_trace(run, 0, late=(0, 0))
    summary = tprof.load(run).summary().to_dict()
    (request,) = summary["requests"]
    assert sum(request["phases"].values()) == request["wall_ns"] == 9_000
    assert (request["phases"]["compile"], request["phases"]["cache"], request["phases"]["module_load"]) == (
        5_800,
        200,
        900,
    )
    assert (request["id"], request["launches"], request["cold_launches"]) == ("r1", 2, 1)
    assert request["basis"] == summary["cold"]["basis"] == "recorded"
    (device,) = summary["devices"]
    assert sum(device["wall_by_phase"].values()) == summary["window"]["wall_ns"]


def test_a_request_served_by_two_threads_gets_the_work_of_both(tmp_path):
    w = Writer()
    request = w.begin("request", None, "generate", 0, request_id="a")
    w.span("serve", None, "generate", 0, 1_000, tid=1, request=request)
    w.span("serve", None, "generate", 500, 3_000, tid=2, request=request)
    w.span("jit", "compile", "mm", 600, 1_600, tid=2, request=request, done={"cache_hit": False})
    w.span("jit", "compile", "other", 3_000, 3_900, tid=1, done={"cache_hit": False})  # for another request
    w.kernel(1, "mm")
    w.shape(1, 1, 1_700)
    w.launch(1_700, 1_800, 1, tid=2, request=request)
    w.launch(3_950, 3_960, 1, tid=1)
    w.end(request, 4_000)
    (row,) = tprof.load(w.write(tmp_path / "run")).requests().to_dict()["requests"]
    assert row["phases"]["compile"] == 1_000
    assert row["phases"]["unattributed"] == 1_000  # nobody served it from 3,000 on
    assert row["launches"] == 1
    assert sum(row["phases"].values()) == row["wall_ns"] == 4_000


@pytest.mark.parametrize(
    ("kind", "phase", "inferred"), [("graph_compile", "graph_compile", False), ("jit", "compile", True)]
)
def test_what_the_recorder_saw_of_a_graph_compiler_is_not_deduced_again(tmp_path, kind, phase, inferred):
    w = Writer()
    w.span(kind, phase, "convert_frame", 10_000_000, 20_000_000)
    run = w.write(tmp_path / "run")
    torch_trace(run, 0, late=(0, 0))
    path = run / "process-100.torch.json"
    trace = json.loads(path.read_text())
    at = {"ph": "X", "cat": "user_annotation", "pid": 100, "tid": 1, "args": {}}
    trace["traceEvents"] += [
        at | {"name": "dynamo_data: compile_id=0/0", "ts": 5_000, "dur": 1},
        at | {"name": "## Call CompiledFxGraph abc ##", "ts": 40_000, "dur": 1},
    ]
    path.write_text(json.dumps(trace))
    spans = tprof.load(run).frame("spans")
    found = spans[(spans.phase == "graph_compile") & (spans.basis == "inferred")]
    assert bool(len(found)) is inferred
