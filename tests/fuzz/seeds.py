"""What the fuzzers start from: small sound sources of every format."""

from __future__ import annotations

import functools
import gzip
import json
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from nsight_files import GLOBAL_TID, good, nvtx, write

SAMPLES = Path(__file__).parents[2] / "sample_traces"
_ROWS = 6  # kept of each table of a real export
_RECORDS = 12  # kept of each type of record of a real journal
Files = dict[str, bytes]  # name in a folder -> content


def _x(cat: str, name: str, ts: float, dur: float, tid: int | str = 1, **args: Any) -> dict[str, Any]:
    place = {"pid": 0, "tid": 7} if cat in ("kernel", "gpu_memcpy", "gpu_memset") else {"pid": 5, "tid": tid}
    return {"ph": "X", "cat": cat, "name": name, **place, "ts": ts, "dur": dur, "args": args}


def _device(cat: str, name: str, ts: float, dur: float, correlation: int, **args: Any) -> dict[str, Any]:
    return _x(cat, name, ts, dur, stream=7, device=0, context=1, correlation=correlation, **args)


@functools.cache
def _torch_text() -> str:
    size = {"grid": [4, 1, 1], "block": [128, 1, 1], "registers per thread": 32, "shared memory": 0}
    events = [
        {"ph": "M", "name": "process_name", "pid": 5, "tid": 0, "ts": 0, "args": {"name": "python"}},
        {"ph": "M", "name": "thread_name", "pid": 5, "tid": 1, "ts": 0, "args": {"name": "thread 1 (main)"}},
        _x("user_annotation", "request#1", 1000.125, 200),
        _x("cpu_op", "aten::mm", 1001, 90, **{"External id": 3, "Input Dims": [[2, 3], []], "Input type": ["float"]}),
        _x("python_function", "model.py(3): forward", 1000.5, 180),
        _x("cuda_runtime", "cudaLaunchKernel", 1010.001, 4.5, correlation=1, **{"External id": 3}),
        {"ph": "s", "id": 1, "pid": 5, "tid": 1, "ts": 1010, "cat": "ac2g", "name": "ac2g"},
        _device("kernel", "void gemm<float>(int)", 1020, 30.999, 1, **size),
        _x("cuda_driver", "cuModuleLoadData", 1040, 20, correlation=2),
        _x("cuda_driver", "cuLaunchKernelEx", 1061, 3, correlation=3),
        _device("kernel", "triton_poi_fused_add_0", 1070, 9, 3, **size),
        _x("cuda_runtime", "cudaMemcpyAsync", 1080, 3, correlation=4),
        _device("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 1090, 2, 4, bytes=4096),
        _device("gpu_memset", "Memset (Device)", 1093, 1, 9, bytes=64),
        _x("cuda_runtime", "cudaDeviceSynchronize", 1100, 50, correlation=5),
        {"ph": "i", "s": "g", "name": "Record Window End", "pid": "Traces", "tid": "Trace", "ts": 1200.5},
    ]
    head = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU", "numSms": 132}], "baseTimeNanoseconds": 0}
    return json.dumps({**head, "distributedInfo": {"rank": 0}, "traceEvents": events, "traceName": "t.json"})


@functools.cache
def _real_torch_text(at: int) -> str:
    document = json.loads(gzip.decompress((SAMPLES / "h200-torch.json.gz").read_bytes()))
    events = document["traceEvents"]
    begin = at * len(events) // 4
    return json.dumps(document | {"traceEvents": events[:8] + events[begin : begin + 40]})


def torch(number: int) -> dict[str, Any]:
    """A fresh document: mostly one by hand, else a cut of a real one."""
    return json.loads(_torch_text() if number % 4 else _real_torch_text(number // 4 % 4))


@functools.cache
def sqlite(number: int) -> bytes:
    """An export: one by hand with every kind of row, or the first rows of every table of a real one."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "x.sqlite")
        if number % 2:
            path.write_bytes(gzip.decompress((SAMPLES / "h200-nsight.sqlite.gz").read_bytes()))
            _shorten(path)
        else:
            _by_hand(path)
        return path.read_bytes()


def _by_hand(path: Path) -> None:
    tables = good()
    tables["NVTX_EVENTS"] += [
        nvtx(20, 90, text="request 1"), nvtx(30, None, text="open"), nvtx(5, None, 75, text="domain", domainId=1),
        nvtx(40, 80, 60, text="start-end", domainId=1, endGlobalTid=GLOBAL_TID + 1), nvtx(41, 60, uint64Value=7),
    ]  # fmt: skip
    tables["OSRT_API"] = [{"start": 60, "end": 95, "globalTid": GLOBAL_TID + 2, "nameId": 6}]
    tables["ThreadNames"] = [{"globalTid": GLOBAL_TID, "nameId": 4}]
    tables["TARGET_INFO_GPU"] = [{"id": 0, "name": "GPU", "uuid": "x", "smCount": 132, "computeMajor": 9}]
    write(path, tables)


def _shorten(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            keep = 150 if name == "StringIds" else _ROWS
            db.execute(f'DELETE FROM "{name}" WHERE rowid NOT IN (SELECT rowid FROM "{name}" LIMIT {keep})')
        db.commit()
        db.execute("VACUUM")


@functools.cache
def run(number: int) -> Files:
    """A run directory: the journals of a recorded sample with the first records of each type, and their launches."""
    folder = SAMPLES / ("two-processes", "cold-torch", "graphs-nsight")[number % 3]
    files = {"run.json": (folder / "run.json").read_bytes()}
    for journal in sorted(folder.glob("process-*.jsonl.gz")):
        files[journal.name.removesuffix(".gz")] = _first(gzip.decompress(journal.read_bytes()))
        launches = journal.with_name(journal.name.replace(".jsonl", ".launches"))
        files[launches.name.removesuffix(".gz")] = _chunks(gzip.decompress(launches.read_bytes()))
    return files


def _first(journal: bytes) -> bytes:
    seen, kept, ended = Counter(), [], set()
    for line in journal.splitlines(keepends=True):
        record = json.loads(line)
        kind = record["type"], record.get("kind")
        if record["type"] == "end":
            keep = record["id"] in ended
        else:
            seen[kind] += 1
            keep = seen[kind] <= _RECORDS
        if keep:
            kept.append(line)
            ended.add(record.get("id") if record["type"] == "begin" else None)
    return b"".join(kept)


def _chunks(data: bytes) -> bytes:
    """The header and the first chunks."""
    at = 16
    while at < len(data) and at < 3000:
        at += 24 + 28 * int.from_bytes(data[at + 4 : at + 8], "little")
    return data[:at]


def plan() -> dict[str, Any]:
    """A plan with one of everything."""
    arguments = [["x", "*fp32", ["tt.divisibility=16"]], ["B", {"constexpr": 128}]]
    variant = {"arguments": arguments, "options": [["num_warps", 4]], "hash": "ab", "calls": 3, "cold_ns": 5,
               "verdict": "warm", "shapes": ["x float32[4]"]}  # fmt: skip
    search = {"key_names": ["n"], "key": [4, "torch.float32"], "config": {"B": 128}, "timings_ns": {"B: 128": 7},
              "calls": 3, "cold_ns": 9}  # fmt: skip
    kernel = {"function": "m.add", "source": "cd", "target": "cuda:90", "triton": "3.6.0",
              "specializations": [variant], "searches": [search]}  # fmt: skip
    calls = [{"name": "s.small", "values": {"n": 4}, "calls": 3}]
    return {"format": "tprof-plan", "format_version": 1, "runs": ["run"], "kernels": [kernel],
            "calls": calls, "graphs": {"0/0": 7}, "left_out": {}}  # fmt: skip
