"""The sample runs that tprof recorded on an H200: links, joined clocks, graphs, ranks, and what must be found."""

from __future__ import annotations

import csv
import gzip
import json
import re
import shutil
from collections import Counter

import pytest

import tprof
from tprof.intervals import NONE
from tprof.model import codes, ints

SERVED = ("cold-torch", "warm-torch", "cold-nsight", "warm-nsight", "two-processes")
RUNS = (*SERVED, "ranks", "graphs-torch", "graphs-nsight")
LIMIT = 1_000_000  # bytes
_loaded = {}


@pytest.fixture
def load(sample_traces):
    """A sample run by name, read once."""

    def get(name):
        if name not in _loaded:
            _loaded[name] = tprof.load(sample_traces / name)
        return _loaded[name]

    return get


def keyed(trace, by="launch"):
    """Per device event: its name, its launch row (or the captured one), and the shape key of that (None for none)."""
    key, keys = codes(trace.host, "shape_key")
    name, names = codes(trace.device, "name")
    launch = ints(trace.device, by)
    found = [keys[key[row]] if row != NONE and key[row] != NONE else None for row in launch.tolist()]
    return [names[n] for n in name.tolist()], launch, found


@pytest.mark.parametrize("name", RUNS)
def test_a_sample_is_small_and_names_no_machine(name, sample_traces):
    files = list((sample_traces / name).iterdir())
    assert sum(file.stat().st_size for file in files) <= LIMIT
    for file in files:
        data = file.read_bytes()
        data = gzip.decompress(data) if file.suffix == ".gz" else data
        assert not re.search(rb"/(tmp|opt|root|home|work|usr)/\w", data), file


@pytest.mark.parametrize("name", RUNS)
def test_every_device_event_has_its_launch(name, load):
    launch = keyed(load(name))[1]
    assert len(launch)
    assert (launch != NONE).all()


@pytest.mark.parametrize("name", [*SERVED, "ranks"])
def test_every_execution_of_a_triton_kernel_has_its_shape_key(name, load):
    trace = load(name)
    names, _, keys = keyed(trace)
    launched = trace.frame("host").query("kind == 'launch'")
    ours = set(launched.kernel)
    assert {"matmul", "attention_forward"} <= ours or {"matmul_tiles", "norm_rows"} == ours
    executed = Counter((n, k) for n, k in zip(names, keys, strict=True) if n in ours)
    assert executed == Counter(zip(launched.kernel, launched.shape_key, strict=True))


@pytest.mark.parametrize("start", ["cold", "warm"])
def test_two_profilers_agree_kernel_by_kernel_on_the_work_of_each_shape(start, load):
    def work(trace):
        names, _, keys = keyed(trace)
        purposes = trace.device["purpose"].to_pylist()
        rows = [(n, k) for n, k, p in zip(names, keys, purposes, strict=True) if k is not None and p == "work"]
        return Counter((n, re.sub(r"^grid \S+ ", "", k)) for n, k in rows)  # the winner's, and it may be another

    one, other = (work(load(f"{start}-{profiler}")) for profiler in ("torch", "nsight"))
    assert one == other
    assert sum(one.values()) == 3 * 8  # matmul, attention and Inductor's kernel, in eight requests


@pytest.mark.parametrize("profiler", ["torch", "nsight"])
def test_replays_belong_to_their_graph_launch_and_captures_to_start_up(profiler, load):
    trace = load(f"graphs-{profiler}")
    host, device = trace.frame("host"), trace.frame("device")
    launch = ints(trace.device, "launch")
    replayed = device[host.name.iloc[launch].isin(["cudaGraphLaunch", "cuGraphLaunch"]).to_numpy()]
    assert Counter(replayed.name)["norm_rows"] == Counter(replayed.name)["softmax_rows"] == 8
    assert len(set(launch[replayed.index])) == 8
    assert not {"launches-apart", "orphan-launches"} & {note.code for note in trace.notes}
    requests = trace.requests().to_dict()["requests"]
    spans = trace.frame("spans")
    assert (spans[spans.phase == "graph_capture"].end_ns <= requests[0]["start_ns"]).all()
    assert [row["cold_tax_ns"] for row in requests] == [0] * 8


def test_nsight_says_of_every_replay_what_was_captured_and_so_its_shape(load):
    trace = load("graphs-nsight")
    names, _, keys = keyed(trace, "capture")
    device, host = trace.frame("device"), trace.frame("host")
    replays = device.graph_node.notna().to_numpy()
    assert (replays == device.capture.notna().to_numpy()).all()
    assert replays.sum() == 3 * 8
    assert set(host.name.iloc[device.capture.dropna()]) == {"cuLaunchKernelEx"}
    ran = Counter((n, re.search(r"M=\d+", k)[0]) for n, k in zip(names, keys, strict=True) if k)
    batches = {
        "M=1": 3,
        "M=4": 1,
        "M=8": 3,
        "M=2": 1,
    }  # requests of 1, 3, 8, 2, 1, 5, 8, 1, by the graph that holds them
    assert ran == {(kernel, m): n for kernel in ("norm_rows", "softmax_rows") for m, n in batches.items()}
    shapes = {row["name"]: row["shapes"] for row in trace.kernels().to_dict()["kernels"]}
    assert shapes["norm_rows"] == shapes["softmax_rows"] == 4
    assert trace.notes == ()


def test_torch_profiler_does_not_say_it_which_is_told(load):
    trace = load("graphs-torch")
    assert trace.device["capture"].null_count == trace.device.num_rows
    (note,) = [note for note in trace.notes if note.code == "no-capture"]
    assert note.count == 3 * 8


@pytest.mark.parametrize("name", ["cold-nsight", "graphs-nsight"])
def test_nsys_stats_says_the_same_of_every_kernel(name, load, sample_traces):
    with (sample_traces / name / "nsys-stats.csv").open() as file:
        theirs = {row["Name"]: (int(row["Instances"]), int(row["Total Time (ns)"])) for row in csv.DictReader(file)}
    device = load(name).frame("device").query("kind == 'kernel'")
    took = device.end_ns - device.start_ns
    ours = {kernel: (len(rows), int(rows.sum())) for kernel, rows in took.groupby(device.name.astype(str))}
    assert ours == theirs


@pytest.mark.parametrize("name", ["cold-torch", "warm-torch"])
def test_busy_is_the_profilers_own_union(name, load, sample_traces):
    (file,) = (sample_traces / name).glob("*.torch.json.gz")
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    work = [e for e in events if e.get("cat") in {"kernel", "gpu_memcpy", "gpu_memset"}]
    last, union = 0.0, 0.0
    for begin, end in sorted((e["ts"], e["ts"] + e["dur"]) for e in work):
        union += max(0.0, end - max(begin, last))
        last = max(last, end)
    (row,) = load(name).summary().to_dict()["devices"]
    assert row["busy_ns"] == pytest.approx(1000 * union, rel=1e-3)


@pytest.mark.parametrize("name", [name for name in SERVED if name != "two-processes"])
def test_the_error_of_the_joined_clock_is_bounded(name, load):
    joined = load(name).frame("sources").query("clock_error_ns.notna()")
    assert len(joined) == 1
    assert (joined.clock_error_ns < 150_000).all()
    host, device = load(name).frame("host"), load(name).frame("device")
    launch = ints(load(name).device, "launch")
    assert (device.start_ns.to_numpy() >= host.start_ns.to_numpy()[launch]).all()


@pytest.mark.parametrize("shift_ns", [7_000_000_123, -3_600_000_000_000])
def test_a_planted_clock_shift_is_found_by_the_beacons(shift_ns, load, sample_traces, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(sample_traces / "cold-torch", run)
    (file,) = run.glob("*.torch.json.gz")

    def later(found):
        ns = int(found[1]) * 1000 + int(found[2]) + shift_ns
        return f'"ts": {ns // 1000}.{ns % 1000:03}'

    text = gzip.decompress(file.read_bytes()).decode()
    file.write_bytes(gzip.compress(re.sub(r'"ts": (\d+)\.(\d{3})', later, text).encode(), 1))
    moved, before = tprof.load(run), load("cold-torch")
    offsets = [int(t.frame("sources").clock_offset_ns.dropna().iloc[0]) for t in (before, moved)]
    assert offsets[1] - offsets[0] == shift_ns
    assert moved.summary().to_dict()["requests"] == before.summary().to_dict()["requests"]


def test_the_reasons_of_a_cold_start_are_named(load):
    cold = load("cold-torch").cold().to_dict()
    second = [row["why"] for row in cold["specializations"] if row["kernel"] == "matmul"][6:]
    assert len(second) == 6
    assert all(why.startswith("M: 777 is not divisible by 16") for why in second)
    tunings = [row for row in cold["tunings"] if row["kernel"] == "matmul"]
    assert [row["compile_ns"] > 0 for row in tunings] == [True, False, True]  # 2048: tuned again, nothing compiled


def test_the_busiest_kernel_is_the_tuners_flush_and_not_the_models(load):
    kernels = load("cold-torch").kernels().to_dict()["kernels"]
    assert "FillFunctor<int>" in kernels[0]["name"]
    assert kernels[0]["purpose"] == "tuning"


def test_the_cold_rank_is_named(load):
    (found,) = [f for f in load("ranks").summary().to_dict()["findings"] if f["code"] == "rank-skew"]
    assert found["title"] == "rank 1 was cold while the other ranks waited in a collective"
    assert found["cost_ns"] > 1_000_000_000


def test_both_processes_compiled_the_same_kernel(load):
    codes_found = {f["code"] for f in load("two-processes").summary().to_dict()["findings"]}
    assert {"compiled-by-many", "tuning-repeated"} <= codes_found
