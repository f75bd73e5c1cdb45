from __future__ import annotations

import csv
import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from nsight_files import unpack

from tprof import model
from tprof.align import align
from tprof.read.nsight import read_nsight

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa

    Read = Callable[[str], model.Trace]

CASES = ("balinski-2025.5.1", "easycuda-2023.4", "flameox-graphs-2025.5.2", "gemm-runtimeonly-2025.1",
         "mordred-noversion", "nsysai-h100-2gpu-2026.2", "nsysai-mock-2026.1", "pipit-saxpy-mpi-2022.2")  # fmt: skip
# A report that a version skipped is an empty file; 2022.4 has other names for the reports and the copies.
REPORTS = {
    "kernel": ("2024.2_cuda_gpu_kern_sum", "2023.4_cuda_gpu_kern_sum", "2022.4_gpukernsum"),
    "memory": ("2024.2_cuda_gpu_mem_time_sum", "2023.4_cuda_gpu_mem_time_sum", "2022.4_gpumemtimesum"),
    "size": ("2024.2_cuda_gpu_mem_size_sum", "2023.4_cuda_gpu_mem_size_sum", "2022.4_gpumemsizesum"),
    "api": ("2024.2_cuda_api_sum", "2023.4_cuda_api_sum", "2022.4_cudaapisum"),
}
OLD = {"HtoD": "Host-to-Device", "DtoH": "Device-to-Host", "DtoD": "Device-to-Device", "memcpy HtoH": "Host-to-Host",
       "Unified Memory memcpy": "memcpy Unified"}  # fmt: skip

each_case = pytest.mark.parametrize("case", CASES)


@pytest.fixture(scope="module")
def read(cases: Path, tmp_path_factory: pytest.TempPathFactory) -> Read:
    folder = tmp_path_factory.mktemp("nsight")
    known: dict[str, model.Trace] = {}

    def trace(case: str) -> model.Trace:
        if case not in known:
            packed = cases / "nsight" / f"{case}.sqlite.gz"
            known[case] = read_nsight(unpack(packed, folder), str(packed))
        return known[case]

    return trace


def _report(cases: Path, case: str, what: str) -> list[dict[str, str]]:
    for name in REPORTS[what]:
        path = cases / "nsight" / f"{case}.stats" / f"{name}.csv"
        if path.is_file() and (rows := list(csv.DictReader(path.read_text().splitlines()))):
            return rows
    return []


def _expected(rows: list[dict[str, str]], *, words: dict[str, str]) -> dict[str, tuple[int, int]]:
    """Rows of a report as {name: (count, ns)}; the 2022.4 kernel report has a row per grid."""
    totals: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for row in rows:
        name = row.get("Name") or row["Operation"]
        for old, new in words.items():
            name = name.replace(old, new)
        count = row.get("Instances") or row.get("Count") or row["Num Calls"]
        before = totals[name]
        totals[name] = (before[0] + int(count), before[1] + int(row["Total Time (ns)"]))
    return dict(totals)


def _found(table: pa.Table, kinds: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    frame = table.to_pandas()
    frame = frame[frame["kind"].isin(kinds)]
    spans = (frame["end_ns"] - frame["start_ns"]).groupby(frame["name"].astype(str))
    return {name: (len(s), int(s.sum())) for name, s in spans}


@each_case
def test_kernels_are_those_of_nsys_stats(case: str, read: Read, cases: Path) -> None:
    assert _found(read(case).device, ("kernel",)) == _expected(_report(cases, case, "kernel"), words={})


@each_case
def test_memory_operations_are_those_of_nsys_stats(case: str, read: Read, cases: Path) -> None:
    assert _found(read(case).device, ("memcpy", "memset")) == _expected(_report(cases, case, "memory"), words=OLD)


@each_case
def test_api_calls_are_those_of_nsys_stats(case: str, read: Read, cases: Path) -> None:
    rows = [
        {**r, "Name": re.sub(r"_v\d{5}$", "", r["Name"])} for r in _report(cases, case, "api")
    ]  # nsys drops 4 digits
    assert _found(read(case).host, ("runtime", "driver")) == _expected(rows, words={})


@each_case
def test_bytes_moved_are_those_of_nsys_stats(case: str, read: Read, cases: Path) -> None:
    frame = read(case).device.to_pandas()
    for row in _report(cases, case, "size"):
        operation = row["Operation"]
        for old, new in OLD.items():
            operation = operation.replace(old, new)
        megabytes = frame.loc[frame["name"] == operation, "bytes"].sum() / 1e6
        assert megabytes == pytest.approx(float(row["Total (MB)"]), abs=6e-4)


@each_case
def test_every_event_ends_after_it_begins_and_points_to_a_thread_or_device(case: str, read: Read) -> None:
    trace = read(case)
    for table, place, places in ((trace.host, "thread", trace.threads), (trace.device, "device", trace.devices)):
        assert (model.ints(table, "end_ns") >= model.ints(table, "start_ns")).all()
        assert (model.ints(table, place) < places.num_rows).all()
        assert (model.ints(table, "pid") == model.ints(places, "pid")[model.ints(table, place)]).all()
        assert (model.ints(table, "start_ns")[1:] >= model.ints(table, "start_ns")[:-1]).all()


def test_graph_executions_are_device_work_of_their_own_kind(read: Read) -> None:
    trace = read("flameox-graphs-2025.5.2")
    assert _found(trace.device, ("graph",)) == {"CUDA graph 1": (2, 3104)}
    assert [(n.code, n.count) for n in trace.notes] == [("opaque-graphs", 2)]
    assert "--cuda-graph-trace=node" in trace.notes[0].message
    aligned = align(trace)
    called = [aligned.host["name"].take(aligned.device[c].drop_null()).to_pylist()[-2:] for c in ("launch", "capture")]
    assert called == [["cudaGraphLaunch"] * 2, ["cudaStreamBeginCapture"] * 2]
    assert aligned.notes == trace.notes


def test_each_process_has_its_own_device(read: Read) -> None:
    devices = read("nsysai-h100-2gpu-2026.2").devices
    assert devices.select(["pid", "ordinal"]).to_pylist() == [{"pid": 111, "ordinal": 0}, {"pid": 112, "ordinal": 1}]


def test_a_cuda_ordinal_is_mapped_to_its_gpu(read: Read) -> None:
    assert read("balinski-2025.5.1").devices["uuid"].to_pylist() == ["GPU-49f21dcc-c8fa-396b-fea7-232a69c4de31"]


def test_an_export_without_a_version_is_read_as_what_it_holds(read: Read) -> None:
    trace = read("mordred-noversion")
    assert trace.sources["version"].to_pylist() == [None]
    assert trace.epoch_ns is None
    assert trace.devices["name"].to_pylist() == ["Quadro RTX 6000"]


def test_an_export_without_kernels_says_so(read: Read) -> None:
    trace = read("gemm-runtimeonly-2025.1")
    assert [n.code for n in trace.notes] == ["no-kernels"]
    assert _found(trace.host, ("driver",)) == {
        "cuStreamCreate": (1, 124820),
        "cuInit": (1, 2670),
        "cuCtxSetCurrent": (1, 1099),
    }


def test_command_buffer_stalls_are_overhead_with_the_call_they_belong_to(read: Read) -> None:
    trace = read("nsysai-h100-2gpu-2026.2")
    assert _found(trace.host, ("overhead",))["Command Buffer Full"][0] == 198
    frame = trace.host.to_pandas()
    assert frame.loc[frame["kind"] == "overhead", "correlation"].iloc[0] == 1452809


def test_the_cold_start_is_read_whole(traces: Path, tmp_path: Path) -> None:
    folder = traces / "h200-cold-start"
    trace = read_nsight(unpack(folder / "nsight_systems_2025.3.sqlite.gz", tmp_path), "h200")
    truth = json.loads((folder / "truth.json").read_text())["nsight"]
    frame = trace.device.to_pandas()
    assert frame["kind"].value_counts().to_dict() == truth["device_ops"]
    assert (frame["start_ns"].min(), frame["end_ns"].max()) == (truth["start"], truth["end"])
    assert (frame["end_ns"] - frame["start_ns"]).sum() == truth["sum_ns"]
    assert _found(trace.device, ("kernel",))["matmul"] == (22469, 268180684)
    ranges = _found(trace.host, ("range",))
    assert ranges["request#0 L=512"] == (1, 8943652477)
    assert ranges["module_load {'name': 'matmul'}"] == (12, 511031920)
    calls = _found(trace.host, ("runtime", "driver"))
    assert sum(n for n, _ in calls.values()) == 242213
    assert {name: n for name, (n, _) in _found(trace.host, ("osrt",)).items()} == {
        "pipe2": 20, "posix_spawn": 16, "read": 23, "waitpid": 26,
    }  # fmt: skip
    assert json.loads(trace.sources["rows_skipped"][0].as_py()) == {
        "CUPTI_ACTIVITY_KIND_CUDA_EVENT": 36178, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": 36206, "NVTX_EVENTS": 1,
        "OSRT_API": 98068,
    }  # fmt: skip
    assert trace.notes == ()
