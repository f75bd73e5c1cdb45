"""Start-up until ready, graphs compiled again, and compile workers, from small journals."""

from __future__ import annotations

from support.runs import Writer

import tprof
from tprof.analyze import Options
from tprof.analyze.check import Limits, check

MS = 1_000_000


def started() -> Writer:
    """200 ms from the process's start to ready: imports, the recorder, weights, a capture in a range, warm-up."""
    w = Writer()
    w.lines[0] |= {"started_ns": -100 * MS}
    w.lines += [
        {"type": "interpreter", "t_ns": -90 * MS},
        {"type": "import", "name": "torch", "t_ns": -80 * MS, "end_ns": -20 * MS},
        {"type": "clock", "when": "start", "t_ns": 5 * MS, "wall_ns": 0, "error_ns": 1},
    ]
    w.span("range", None, "weights", 10 * MS, 40 * MS)
    capture = w.begin("range", None, "capture bs=8", 50 * MS)
    w.span("graph_capture", "graph_capture", "CUDAGraph", 52 * MS, 60 * MS, parent=capture)
    w.end(capture, 62 * MS)
    w.lines.append({"type": "mark", "name": "ready", "tid": 1, "t_ns": 100 * MS})
    w.span("jit", "compile", "late", 120 * MS, 130 * MS)
    return w


def test_the_parts_of_a_start_up_sum_to_it(tmp_path):
    rows = tprof.load(started().write(tmp_path / "run")).cold().to_dict()["startup"]
    assert sum(row["total_ns"] for row in rows) == 200 * MS
    assert {(row["part"], row["within"]): row["total_ns"] / MS for row in rows} == {
        ("interpreter", None): 10, ("unattributed", None): 30, ("import torch", None): 60, ("tprof itself", None): 5,
        ("host", None): 53, ("weights", None): 30, ("capture bs=8", None): 4, ("graph_capture", "capture bs=8"): 8,
    }  # fmt: skip
    assert [row["part"] for row in rows][:3] == ["interpreter", "unattributed", "import torch"]
    assert sum(row["of_startup_share"] for row in rows) == 1


def test_what_comes_after_ready_is_marked(tmp_path):
    (use,) = tprof.load(started().write(tmp_path / "run")).cold().to_dict()["first_uses"]
    assert use["after_ready"] is True


def test_without_ready_there_is_no_start_up_to_tell(tmp_path):
    w = started()
    w.lines = [line for line in w.lines if line["type"] != "mark"]
    cold = tprof.load(w.write(tmp_path / "run")).cold().to_dict()
    assert cold["startup"] == []
    assert cold["first_uses"][0]["after_ready"] is None


def test_a_recompile_tells_its_guard_its_cost_and_its_request(tmp_path):
    w = Writer()
    request = w.begin("request", None, "generate", 1_000, request_id="r1")
    graph = w.begin("graph_compile", "graph_compile", "dynamo", 2_000, request=request)
    said = {"function": "Net.forward", "file": "net.py", "line": 4, "tid": 1, "t_ns": 2_100, "span": graph}
    reasons = ["0/0: size mismatch at index 0. expected 512, actual 777", "0/1: other"]
    w.lines.append({"type": "recompile", **said, "reasons": reasons})
    cache = {"tid": 1, "t_ns": 2_200, "span": graph, "cache": "fx_graph", "outcome": "bypass", "reason": "a custom op"}
    w.lines.append({"type": "graph_cache", **cache})
    choice = {"tid": 1, "t_ns": 2_300, "span": graph, "name": "mm", "inputs": [], "best": "triton_mm_4", "choices": []}
    w.lines.append({"type": "selection", **choice})
    w.end(graph, 9_000)
    w.end(request, 9_500)
    cold = tprof.load(w.write(tmp_path / "run")).cold().to_dict()
    (row,) = cold["recompiles"]
    assert row["guard"] == "size mismatch at index 0. expected 512, actual 777"
    assert (row["function"], row["source"], row["wall_ns"]) == ("Net.forward", "net.py:4", 7_000)
    assert (row["request"], row["request_id"], len(row["guards"])) == ("generate", "r1", 2)
    (row,) = cold["graph_caches"]
    assert (row["cache"], row["outcome"], row["reason"], row["request_id"]) == (
        "fx_graph",
        "bypass",
        "a custom op",
        "r1",
    )
    (row,) = cold["selections"]
    assert (row["operator"], row["best"]) == ("mm", "triton_mm_4")


def test_the_compile_of_a_worker_is_that_of_the_request_which_waited(tmp_path):
    main = Writer(pid=100)
    request = main.begin("request", None, "generate", 1_000, request_id="r1")
    main.span("compile_wait", "compile", "async_compile.wait", 2_000, 8_000, request=request)
    main.end(request, 9_000)
    main.write(tmp_path / "run")
    for pid, begin in ((200, 2_500), (201, 8_500)):  # the second one begins when nobody waits any more
        worker = Writer(pid=pid)
        worker.lines[0] |= {"worker_of": 100}
        worker.span("jit", "compile", "triton_poi", begin, begin + 400, origin="inductor")
        worker.write(tmp_path / "run")
    rows = tprof.load(tmp_path / "run").cold().to_dict()["first_uses"]
    assert [(row["request_id"], row["graph_compile"]) for row in rows] == [("r1", True), (None, True)]
    assert rows[0]["waited_by"].startswith("100/")
    assert rows[1]["waited_by"] is None


def test_two_runs_of_one_process_id_are_two_processes_and_two_recordings_in_a_run_one(tmp_path):
    one, two = (started().write(tmp_path / name) for name in ("one", "two"))
    rows = tprof.load(one, two).cold().to_dict()["startup"]
    assert sum(row["total_ns"] for row in rows) == 2 * 200 * MS
    (two / "process-100.jsonl").rename(one / "process-100.1.jsonl")
    trace = tprof.load(one)
    assert trace.processes.num_rows == 1
    assert set(trace.startup["process"].to_pylist()) == set(trace.threads["process"].to_pylist()) == {0}


def test_each_of_two_runs_of_one_process_id_is_judged_by_its_own_ready(tmp_path):
    early, late = started(), started()
    next(line for line in late.lines if line["type"] == "mark")["t_ns"] = 150 * MS
    runs = tprof.load(early.write(tmp_path / "early"), late.write(tmp_path / "late"))
    (row,) = check(runs.attribution, Options(), Limits(cold_after_ready=0)).payload["gates"]
    assert row["value"] == 1  # the compile at 120 ms of the run that was ready at 100 ms


def test_a_journal_that_says_nothing_of_its_start_begins_where_it_begins(tmp_path):
    w = Writer()
    w.span("jit", "compile", "add", 100, 400)
    w.lines.append({"type": "mark", "name": "ready", "tid": 1, "t_ns": 500})
    assert tprof.load(w.write(tmp_path / "run")).cold().to_dict()["startup"] == []
