"""Pitfalls that users of torch.profiler files reported, one small generated file each."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from tprof.model import int3, ints
from tprof.read.torch_json import read_torch

if TYPE_CHECKING:
    from pathlib import Path

    from tprof.model import Trace


def x(cat: str, name: str, ts: float, dur: float, pid: Any = 10, tid: Any = 11, **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def kernel(name: str, ts: float, dur: float, **args: Any) -> dict[str, Any]:
    return x("kernel", name, ts, dur, 0, 7, **{"device": 0, "stream": 7, **args})


def read(folder: Path, *events: dict[str, Any], **header: Any) -> Trace:
    path = folder / "t.json"
    path.write_text(json.dumps({**header, "traceEvents": list(events)}))
    return read_torch(path, "t.json")


def noted(trace: Trace) -> dict[str, int]:
    return {note.code: note.count for note in trace.notes}


def skipped(trace: Trace) -> dict[str, int]:
    return json.loads(trace.sources["rows_skipped"][0].as_py())


def test_an_operator_with_a_stream_is_no_device_work(tmp_path: Path) -> None:
    op = x("cpu_op", "triton_poi_fused_0", 1, 50, stream=7, device=0, kernel_backend="triton", kernel_hash="c1")
    trace = read(tmp_path, op, kernel("triton_poi_fused_0", 60, 2))
    assert trace.device.num_rows == 1
    assert trace.host["kind"].to_pylist() == ["op"]
    assert json.loads(trace.host["attrs"][0].as_py()) == {"kernel_backend": "triton", "kernel_hash": "c1"}


def test_impossible_times_are_dropped_and_counted(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        kernel("good", 100, 5),
        kernel("zero", 0, 0),
        kernel("negative", 100, -1e15),
        x("cpu_op", "timeless", None, 1),  # type: ignore[arg-type]
        x("cpu_op", "wraps", 9.1e15, 9.1e15),
        x("cpu_op", "at zero", 0, 0),
    )
    assert trace.device["name"].to_pylist() == ["good"]
    assert trace.host["name"].to_pylist() == ["at zero"]
    assert trace.sources["rows_dropped"][0].as_py() == 4
    assert sorted(n.count for n in trace.notes if n.code == "dropped-rows") == [1, 1, 2]


def test_event_without_a_length_is_an_instant(tmp_path: Path) -> None:
    event = x("cpu_op", "a", 3, 0)
    del event["dur"]
    trace = read(tmp_path, event)
    assert (ints(trace.host, "start_ns").tolist(), ints(trace.host, "end_ns").tolist()) == ([3000], [3000])


def test_flows_counters_and_marks_are_skipped(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        {"ph": "s", "id": 1, "pid": 10, "tid": 11, "ts": 1, "cat": "ac2g", "name": "ac2g"},
        {"ph": "f", "id": 1, "pid": 0, "tid": 7, "ts": 2, "cat": "ac2g", "name": "ac2g", "bp": "e"},
        {"ph": "C", "name": "mem", "pid": 10, "ts": 2, "args": {"bytes": 5, "name": 3}},
        {"ph": "i", "s": "t", "name": "[memory]", "pid": 10, "tid": 11, "ts": 1, "args": {"Device Id": 0}},
        x("cuda_sync", "Stream Sync", 1, 2, 0, 7, stream=7, device=0),
        x("gpu_user_annotation", "step", 1, 2, 0, 7),
        x("Trace", "PyTorch Profiler (0)", 1, 2, "Spans", "PyTorch Profiler"),
        x("user_annotation", "step", 1, 2),
    )
    assert trace.host["kind"].to_pylist() == ["range"]
    assert trace.device.num_rows == 0
    assert skipped(trace) == {
        "s": 1, "f": 1, "C": 1, "i": 1, "cuda_sync": 1, "gpu_user_annotation": 1, "Trace": 1,
    }  # fmt: skip


def test_places(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        {"ph": "M", "name": "process_name", "pid": 10, "tid": 0, "ts": 0, "args": {"name": "python3"}},
        {"ph": "M", "name": "thread_name", "pid": 10, "tid": 11, "ts": 0, "args": {"name": "thread 11 (pt_main)"}},
        x("cpu_op", "a", 1, 1),
        x("cuda_runtime", "cudaLaunchKernel", 1, 1, correlation=5),
        x("cpu_op", "b", 1, 1, 99, "worker"),
        x("overhead", "Lazy Function Loading", 1, 1, -1, 0),
        kernel("k", 3, 1, device=1, correlation=5, context=2),
        deviceProperties=[{"id": 0, "name": "G0"}, {"id": 1, "name": "G1"}],
        distributedInfo={"rank": 3, "world_size": 8},
        host_name="node7",
        username="somebody",
    )
    assert [(r["pid"], r["tid"], r["name"]) for r in trace.threads.to_pylist()] == [
        (10, 0, None), (10, 11, "thread 11 (pt_main)"), (99, -2, "worker"),
    ]  # fmt: skip
    assert ints(trace.host, "thread").tolist() == [1, 1, 2, 0]
    process = trace.processes.select(["host", "pid", "name", "rank"]).to_pylist()[0]
    assert process == {"host": "node7", "pid": 10, "name": "python3", "rank": 3}
    assert ints(trace.device, "pid").tolist() == [10]
    assert [(r["ordinal"], r["pid"], r["name"]) for r in trace.devices.to_pylist()] == [(1, 10, "G1")]
    assert trace.meta["distributedInfo"] == {"rank": 3, "world_size": 8}
    assert "somebody" not in str(trace.meta)


def test_device_columns(tmp_path: Path) -> None:
    args = {"grid": [1056, 1, 2], "block": [256, 1, 1], "registers per thread": 44, "shared memory": 24576}
    copy = x("gpu_memcpy", "Memcpy HtoD", 5, 1, 0, 7, device=0, context=1, stream=4294967295, bytes=1 << 40)
    trace = read(tmp_path, kernel("k", 1, 1, context=1, **args, **{"External id": 3}), copy)
    assert int3(trace.device, "grid").tolist() == [[1056, 1, 2], [-1, -1, -1]]
    assert int3(trace.device, "block").tolist() == [[256, 1, 1], [-1, -1, -1]]
    assert ints(trace.device, "registers").tolist() == [44, -1]
    assert ints(trace.device, "shared_bytes").tolist() == [24576, -1]
    assert ints(trace.device, "external_id").tolist() == [3, -1]
    assert ints(trace.device, "stream").tolist() == [7, 4294967295]
    assert ints(trace.device, "bytes").tolist() == [-1, 1 << 40]
    assert trace.device["kind"].to_pylist() == ["kernel", "memcpy"]


def test_xpu_kernels_have_their_queue_as_stream(tmp_path: Path) -> None:
    trace = read(
        tmp_path,
        x("xpu_runtime", "urEnqueueKernelLaunch", 1, 1, correlation=1),
        x("kernel", "gemm", 3, 1, 0, 2, **{"sycl queue": 5, "correlation": 1, "device": 0}),
    )
    assert ints(trace.device, "stream").tolist() == [2]
    assert trace.host["kind"].to_pylist() == ["runtime"]
    assert trace.meta["platform"] == "XPU"


def test_launches_without_kernels_are_told(tmp_path: Path) -> None:
    calls = [x("cuda_runtime", "cudaLaunchKernel", n, 1, correlation=n) for n in range(1, 4)]
    other = [x("cuda_runtime", name, 9, 1, correlation=9) for name in ("cudaMalloc", "cudaLaunchHostFunc")]
    assert noted(read(tmp_path, *calls, *other)) == {"no-device-events": 3}
    assert noted(read(tmp_path, *calls, *other, kernel("k", 5, 1, correlation=2))) == {"orphan-launches": 2}


def test_shape_key(tmp_path: Path) -> None:
    shapes = {
        "Input Dims": [[512, 1024], [], [[2, 3], [4]], []],
        "Input type": ["c10::BFloat16", "Scalar", "TensorList", ""],
        "Input Strides": [[1024, 1], [], [[3, 1], [1]], []],
    }
    trace = read(tmp_path, x("cpu_op", "aten::a", 1, 1, **shapes), x("cpu_op", "aten::b", 1, 1))
    assert trace.host["shape_key"].to_pylist() == [
        "c10::BFloat16[512,1024]:[1024,1] Scalar TensorList[[2,3],[4]]:[[3,1],[1]] -", None,
    ]  # fmt: skip


def test_epoch(tmp_path: Path) -> None:
    absolute, relative = x("cpu_op", "a", 1600000000000000, 1), x("cpu_op", "a", 5125955178576.351, 1)
    assert read(tmp_path, relative, baseTimeNanoseconds=1790857026000000000).epoch_ns == 1790857026000000000
    assert read(tmp_path, absolute).epoch_ns == 0
    assert read(tmp_path, relative).epoch_ns is None


def test_brackets_and_key_words_in_names(tmp_path: Path) -> None:
    name = '"traceEvents": [}, {"ph": "X" ] \\'
    trace = read(tmp_path, x("cpu_op", name, 1, 1), x("cpu_op", "b", 1, 1), traceName=f"[Strategy]{name}")
    assert trace.host["name"].to_pylist() == [name, "b"]
    assert trace.meta["traceName"] == f"[Strategy]{name}"


def test_unknown_categories_are_kept_and_told(tmp_path: Path) -> None:
    trace = read(tmp_path, x("brand_new", "a", 1, 1), x("privateuse1_runtime", "b", 1, 1), kernel("k", 1, 1))
    assert trace.host["kind"].to_pylist() == ["range", "runtime"]
    assert noted(trace) == {"unknown-category": 1}


def test_a_block_of_flows_alone(tmp_path: Path) -> None:
    flows = [{"ph": "s", "id": n, "pid": 1, "tid": 1, "ts": n, "cat": "f", "name": "f"} for n in range(9)]
    trace = read(tmp_path, *flows)
    assert skipped(trace) == {"s": 9}
    assert noted(trace) == {"no-events": 1}


_MEASURE = """
import sys, pathlib, pandas
from tprof.read.torch_json import read_torch
def anonymous():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024
path = pathlib.Path(sys.argv[1])
peak = before = anonymous()
def progress(done, total):
    global peak
    peak = max(peak, anonymous())
trace = read_torch(path, "t", progress)
print(trace.host.num_rows, max(peak, anonymous()) - before)
"""


def test_memory_grows_by_less_than_the_file(tmp_path: Path, root: Path) -> None:
    args = ", ".join(f'"key {n}": "value {n}"' for n in range(12))
    path = tmp_path / "large.json"
    with path.open("w") as file:
        file.write('{"schemaVersion": 1, "traceEvents": [')
        for n in range(120_000):
            file.write(
                f'\n  {{\n    "ph": "X", "cat": "cpu_op", "name": "op{n % 50}", "pid": 1, "tid": 1,\n'
                f'    "ts": {n}.125, "dur": 0.500,\n    "args": {{\n      "External id": {n}, {args}\n    }}\n  }},'
            )
        file.write(f"{json.dumps(kernel('k', 1, 1))}]}}")
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE, str(path)], cwd=root, capture_output=True, text=True, check=True
    )
    rows, grown = map(int, done.stdout.split())
    assert rows == 120_000
    assert grown < path.stat().st_size
