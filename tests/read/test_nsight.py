from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from nsight_files import GLOBAL_PID, GLOBAL_TID, PID, TID, good, nvtx, write

from tprof import model
from tprof.errors import SourceError
from tprof.read.nsight import read_nsight

if TYPE_CHECKING:
    from pathlib import Path

RUNTIME, KERNEL = "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL"
Tables = dict[str, list[dict[str, Any]]]


def _read(tmp_path: Path, tables: Tables) -> model.Trace:
    return read_nsight(write(tmp_path / "t.sqlite", tables), "typed.sqlite")


def _codes(trace: model.Trace) -> dict[str, int]:
    return {n.code: n.count for n in trace.notes}


def _without(tables: Tables, table: str, *columns: str) -> Tables:
    return {**tables, table: [{k: v for k, v in row.items() if k not in columns} for row in tables[table]]}


def _changed(tables: Tables, table: str, **values: object) -> Tables:
    """The first row of a table with some values changed."""
    first, *rest = tables[table]
    return {**tables, table: [{**first, **values}, *rest]}


def test_a_good_export(tmp_path: Path) -> None:
    trace = _read(tmp_path, good())
    assert trace.notes == ()
    host = trace.host.select(["start_ns", "end_ns", "pid", "tid", "kind", "name", "correlation"]).to_pylist()
    assert [tuple(r.values()) for r in host] == [
        (10, 400, PID, TID, "range", "step", None),
        (50, 90, PID, TID, "driver", "cuModuleLoadData", 10),
        (100, 150, PID, TID, "runtime", "cudaLaunchKernel", 11),
    ]
    assert trace.device["name"].to_pylist() == [
        "[CUDA memcpy Host-to-Device]",
        "[CUDA memset]",
        "void gemm<float>(int)",
    ]
    assert trace.device["bytes"].to_pylist() == [4096, 64, None]
    kernel = trace.device.to_pylist()[2]
    assert (kernel["grid"], kernel["block"]) == ([4, 2, 1], [128, 1, 1])
    assert (kernel["registers"], kernel["shared_bytes"], kernel["graph_node"]) == (32, 124, None)
    assert (kernel["context"], kernel["stream"], kernel["correlation"]) == (1, 7, 11)
    assert [kernel[c] for c in ("launch", "purpose", "path")] == [None] * 3


def test_the_source_says_who_wrote_it_and_when(tmp_path: Path) -> None:
    trace = _read(tmp_path, good())
    (source,) = trace.sources.to_pylist()
    assert (source["path"], source["format"], source["version"]) == ("typed.sqlite", "nsight", "2025.3.2.0")
    assert (source["rows_read"], source["rows_dropped"], source["rows_skipped"]) == (6, 0, "{}")
    assert trace.epoch_ns == source["epoch_ns"] == 1_700_000_000_000_000_000
    assert trace.meta["schema"] == "3.20.3"


def test_nobody_is_named(tmp_path: Path) -> None:
    tables = {**good(), "META_DATA_CAPTURE": [{"name": "SECRET", "value": "token"}]}
    assert not {"somebody", "token"} & set(map(str, _read(tmp_path, tables).meta.values()))


@pytest.mark.parametrize(
    ("name", "value", "epoch"),
    [
        ("EXPORT_PARAM_TIME_SHIFT", "250", 1_699_999_999_999_999_750),
        ("EXPORT_PARAM_TIME_SHIFT", "0", 1_700_000_000_000_000_000),
        ("EXPORT_PARAM_TIME_NORMALIZE", "true", 0),
    ],
)
def test_times_that_the_export_shifted(tmp_path: Path, name: str, value: str, epoch: int) -> None:
    tables = good()
    tables["META_DATA_EXPORT"].append({"name": name, "value": value})
    assert _read(tmp_path, tables).epoch_ns == epoch


@pytest.mark.parametrize("table", sorted(good()))
def test_every_table_is_optional(tmp_path: Path, table: str) -> None:
    tables = good()
    del tables[table]
    trace = _read(tmp_path, tables)
    expected = {KERNEL: {"no-kernels": 1}, "StringIds": {"missing-strings": 3}}.get(table, {})
    assert _codes(trace) == expected
    assert trace.host.num_rows + trace.device.num_rows == 6 - len(good()[table]) * table.startswith(("CUPTI", "NVTX"))


def test_no_names_at_all(tmp_path: Path) -> None:
    tables = good()
    del tables["StringIds"]
    trace = _read(tmp_path, tables)
    assert trace.host["name"].to_pylist() == ["step", "[string 2]", "[string 1]"]
    assert trace.host["kind"].to_pylist() == ["range", "driver", "runtime"]
    assert trace.device["name"].to_pylist()[2] == "[string 3]"


def test_every_optional_column_may_be_missing(tmp_path: Path) -> None:
    tables = _without(good(), KERNEL, "contextId", "registersPerThread", "gridX", "graphNodeId", "staticSharedMemory")
    tables = _without(_without(tables, RUNTIME, "correlationId"), "NVTX_EVENTS", "textId", "domainId", "uint64Value")
    trace = _read(tmp_path, tables)
    kernel = trace.device.to_pylist()[2]
    assert _codes(trace) == {}
    assert [kernel[c] for c in ("context", "registers", "grid", "graph_node")] == [None] * 4
    assert kernel["shared_bytes"] == 24
    assert trace.host["correlation"].null_count == 3


@pytest.mark.parametrize(
    ("names", "expected", "missing"),
    [
        ({"demangledName": None}, "gemm", 0),
        ({"demangledName": 77}, "gemm", 0),
        ({"demangledName": 77, "shortName": None}, "[string 77]", 1),
        ({"demangledName": None, "shortName": None}, "[unknown kernel]", 0),
    ],
)
def test_a_kernel_takes_the_best_name_there_is(
    tmp_path: Path, names: dict[str, int | None], expected: str, missing: int
) -> None:
    trace = _read(tmp_path, _changed(good(), KERNEL, **names))
    assert trace.device["name"].to_pylist()[2] == expected
    assert _codes(trace).get("missing-strings", 0) == missing


@pytest.mark.parametrize("column", ["start", "end", "deviceId", "streamId", "globalPid"])
def test_a_table_without_a_required_column_is_left_out_and_counted(tmp_path: Path, column: str) -> None:
    trace = _read(tmp_path, _without(good(), KERNEL, column))
    assert _codes(trace) == {"missing-column": 1, "dropped-rows": 1, "no-kernels": 1}
    assert column in trace.notes[0].message
    assert trace.sources["rows_dropped"].to_pylist() == [1]


@pytest.mark.parametrize(
    "values",
    [{"start": None}, {"end": None}, {"end": 199}, {"start": 0}, {"globalPid": None}, {"start": None, "end": None}],
)
def test_rows_that_cannot_be(tmp_path: Path, values: dict[str, object]) -> None:
    trace = _read(tmp_path, _changed(good(), KERNEL, **values))
    assert _codes(trace) == {"dropped-rows": 1, "no-kernels": 1}
    assert "KERNEL" in trace.notes[0].message


def test_text_where_a_number_belongs(tmp_path: Path) -> None:
    tables = _changed(good(), KERNEL, registersPerThread="many")
    tables = _changed(tables, RUNTIME, start="soon")
    trace = _read(tmp_path, tables)
    assert _codes(trace) == {"dropped-rows": 1, "bad-values": 2}
    assert trace.device.to_pylist()[2]["registers"] is None
    assert trace.host["name"].to_pylist() == ["step", "cuModuleLoadData"]


@pytest.mark.parametrize("junk", ["x", b"\xff", -(1 << 63), (1 << 63) - 1])
def test_junk_in_any_one_cell(tmp_path: Path, junk: object) -> None:
    tables = {**good(), "OSRT_API": [{"start": 1, "end": 2, "globalTid": GLOBAL_TID, "nameId": 5}]}
    cells = [(table, column) for table, rows in tables.items() for column in rows[0]]
    for number, (table, column) in enumerate(cells):
        path = write(tmp_path / f"{number}.sqlite", _changed(tables, table, **{column: junk}))
        trace = read_nsight(path, "t")
        assert trace.host.num_rows + trace.device.num_rows + trace.sources["rows_dropped"][0].as_py() >= 6


def test_nothing_but_names(tmp_path: Path) -> None:
    trace = _read(tmp_path, {"StringIds": good()["StringIds"]})
    assert (trace.host.num_rows, trace.device.num_rows, trace.devices.num_rows, trace.threads.num_rows) == (0, 0, 0, 0)
    assert _codes(trace) == {"no-kernels": 1}


def test_a_number_that_does_not_fit(tmp_path: Path) -> None:
    trace = _read(tmp_path, _changed(good(), KERNEL, registersPerThread=1 << 31, gridX=1 << 40))
    kernel = trace.device.to_pylist()[2]
    assert (kernel["registers"], kernel["grid"], kernel["block"]) == (None, None, [128, 1, 1])
    assert _codes(trace) == {"bad-values": 2}


def test_an_absent_table_is_not_an_empty_one(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"^typed.sqlite: is a SQLite database, but not an export"):
        _read(tmp_path, {"something": [{"a": 1}]})


def test_a_newer_schema_is_read_with_a_warning(tmp_path: Path) -> None:
    tables = good()
    tables["META_DATA_EXPORT"][2]["value"] = "3.27.0"
    trace = _read(tmp_path, tables)
    assert _codes(trace) == {"schema-newer": 1}
    assert trace.device.num_rows == 3


def test_the_version_table_of_2022(tmp_path: Path) -> None:
    tables = good()
    tables["EXPORT_META_DATA"] = tables.pop("META_DATA_EXPORT")
    assert _read(tmp_path, tables).meta["schema"] == "3.20.3"


def test_a_table_with_a_version_in_its_name(tmp_path: Path) -> None:
    tables = good()
    tables["NVTX_EVENTS_V2"] = tables.pop("NVTX_EVENTS")
    assert "step" in _read(tmp_path, tables).host["name"].to_pylist()


def test_string_ids_may_repeat_values_and_be_huge(tmp_path: Path) -> None:
    tables = good()
    tables["StringIds"] += [{"id": 1 << 40, "value": "void gemm<float>(int)"}]
    tables[KERNEL].append({**tables[KERNEL][0], "demangledName": 1 << 40, "start": 500, "end": 600})
    _, names = model.codes(_read(tmp_path, tables).device, "name")
    assert names.count("void gemm<float>(int)") == 1


def test_ranges_without_an_end_are_counted_and_marks_are_skipped(tmp_path: Path) -> None:
    tables = good()
    tables["NVTX_EVENTS"] += [nvtx(20, None, text="open"), nvtx(30, None, 34, text="mark"), nvtx(-5, 1, textId=9)]
    trace = _read(tmp_path, tables)
    assert trace.host["name"].to_pylist()[:2] == ["lazy load", "step"]
    assert trace.host["start_ns"].to_pylist()[0] == -5
    assert _codes(trace) == {"dropped-rows": 1}
    assert json.loads(trace.sources["rows_skipped"][0].as_py()) == {"NVTX_EVENTS": 1}


def test_marks_only(tmp_path: Path) -> None:
    assert _codes(_read(tmp_path, {**good(), "NVTX_EVENTS": [nvtx(30, None, 34, text="mark")]})) == {"no-ranges": 1}


def test_a_domain_that_nobody_named(tmp_path: Path) -> None:
    tables = {**good(), "NVTX_EVENTS": [nvtx(1, 2, text="a", domainId=3), nvtx(5, 6, text="b", domainId=0)]}
    assert _read(tmp_path, tables).host["domain"].to_pylist()[:2] == ["[domain 3]", None]


def test_operating_system_calls_that_matter(tmp_path: Path) -> None:
    call = {"globalTid": GLOBAL_TID, "start": 1000}
    rows = [(5, 1001), (6, 15_001_000), (6, 15_000_999), (7, 99_000_000), (None, 1002)]
    tables = {**good(), "OSRT_API": [{**call, "nameId": name, "end": end} for name, end in rows]}
    trace = _read(tmp_path, tables)
    assert trace.host["name"].to_pylist()[3:] == ["read", "waitpid"]
    assert json.loads(trace.sources["rows_skipped"][0].as_py()) == {"OSRT_API": 3}


def test_overhead_is_named_by_its_type_where_it_has_no_name(tmp_path: Path) -> None:
    row = {"globalTid": GLOBAL_TID, "start": 1000, "end": 1100, "nameId": 9, "overheadType": 7, "correlationId": 11}
    tables = {**good(), "CUPTI_ACTIVITY_KIND_OVERHEAD": [row, {**row, "nameId": None}]}
    rows = [r for r in _read(tmp_path, tables).host.to_pylist() if r["kind"] == "overhead"]
    assert [(r["name"], r["correlation"]) for r in rows] == [("lazy load", 11), ("Lazy function loading", 11)]


def test_a_process_without_kernels(tmp_path: Path) -> None:
    tables = good()
    tables["NVTX_EVENTS"].append(nvtx(20, 30, text="worker") | {"globalTid": (1 << 48) | (7 << 24) | 7})
    trace = _read(tmp_path, tables)
    assert _codes(trace) == {"process-without-kernels": 1}
    assert "(7)" in trace.notes[0].message


@pytest.mark.parametrize("table", ["CUDA_GRAPH_EVENTS", "CUDA_GRAPH_NODE_EVENTS"])
def test_graph_nodes_of_older_and_newer_exports(tmp_path: Path, table: str) -> None:
    node = {"start": 110, "globalTid": GLOBAL_TID, "graphNodeId": 1 << 32, "originalGraphNodeId": None}
    copy = {**node, "start": 160, "graphNodeId": 2 << 32, "originalGraphNodeId": 1 << 32}
    lost = [{**node, "globalTid": GLOBAL_TID + 1}, {**node, "graphNodeId": None}, {**node, "start": None}]
    trace = _read(tmp_path, {**good(), table: [node, *lost, copy]})
    assert trace.threads["tid"][0].as_py() == TID
    assert [tuple(row.values()) for row in trace.graph_nodes.to_pylist()] == [
        (110, 0, 1 << 32, None),
        (160, 0, 2 << 32, 1 << 32),
    ]


def test_a_graph_launch_without_device_rows(tmp_path: Path) -> None:
    tables = good()
    launch = {"globalTid": GLOBAL_TID, "nameId": 8, "eventClass": 0}
    tables[RUNTIME] += [{**launch, "start": 600 + i, "end": 700 + i, "correlationId": i} for i in (11, 90, 91)]
    assert _codes(_read(tmp_path, tables)) == {"graph-launches-without-kernels": 2}


def test_ordinals_of_processes_are_never_merged(tmp_path: Path) -> None:
    tables = good()
    tables[KERNEL].append({**tables[KERNEL][0], "globalPid": (1 << 48) | (7 << 24)})
    tables["TARGET_INFO_GPU"] = [
        {"id": 0, "name": "NVIDIA H200", "uuid": "GPU-aaa"},
        {"id": 1, "name": "NVIDIA H200", "uuid": "GPU-00000000-0000-0000-0000-000000000000"},
    ]
    tables["TARGET_INFO_CUDA_DEVICE"] = [{"gpuId": 1, "cudaId": 0, "pid": 7}, {"gpuId": 0, "cudaId": 0, "pid": PID}]
    devices = _read(tmp_path, tables).devices.select(["pid", "ordinal", "uuid", "name"]).to_pylist()
    assert [tuple(d.values()) for d in devices] == [(7, 0, None, "NVIDIA H200"), (PID, 0, "GPU-aaa", "NVIDIA H200")]


def test_names_of_the_machine_processes_threads_and_ranks(tmp_path: Path) -> None:
    tables = good()
    tables["TARGET_INFO_SYSTEM_ENV"] = [{"name": "Hostname", "value": "node7"}, {"name": "CpuCores", "value": "16"}]
    tables["PROCESSES"] = [
        {"globalPid": GLOBAL_PID, "name": "python3"},
        {"globalPid": (1 << 48) | (9 << 24), "name": "x"},
    ]
    tables["ThreadNames"] = [{"globalTid": GLOBAL_TID, "nameId": 4}, {"globalTid": 5, "nameId": 7}]
    tables["MPI_RANKS"] = [{"globalTid": GLOBAL_TID, "rank": 3}]
    trace = _read(tmp_path, tables)
    known = trace.processes.select(["host", "pid", "name", "rank"])
    assert known.to_pylist() == [{"host": "node7", "pid": PID, "name": "python3", "rank": 3}]
    named = trace.threads.select(["host", "pid", "tid", "name"])
    assert named.to_pylist() == [{"host": "node7", "pid": PID, "tid": TID, "name": "gemm"}]
    assert trace.devices["host"].to_pylist() == ["node7"]
    assert trace.meta["cpu_cores"] == "16"


def test_a_process_without_a_name_takes_its_main_threads(tmp_path: Path) -> None:
    tables = {
        **good(),
        "ThreadNames": [{"globalTid": GLOBAL_TID, "nameId": 7}, {"globalTid": GLOBAL_PID | PID, "nameId": 4}],
    }
    assert _read(tmp_path, tables).processes["name"].to_pylist() == ["gemm"]


def test_progress_ends_at_the_whole(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    read_nsight(write(tmp_path / "t.sqlite", good()), "t", lambda done, total: seen.append((done, total)))
    assert seen[-1] == (6, 6)
    assert seen == sorted(seen)


def test_what_a_call_waited_for(tmp_path: Path) -> None:
    sync = {"start": 100, "end": 150, "deviceId": 0, "streamId": 7, "globalPid": GLOBAL_PID, "correlationId": 11}
    other = {**sync, "globalPid": GLOBAL_PID + (1 << 24), "correlationId": 10}
    rows = [{**sync, "syncType": 3, "eventId": None}, {**other, "syncType": 1, "eventId": 5}]
    trace = _read(tmp_path, {**good(), "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": rows})
    told = dict(zip(trace.host["name"].to_pylist(), trace.host["attrs"].to_pylist(), strict=True))
    assert json.loads(told["cudaLaunchKernel"]) == {"wait": "stream", "device": 0, "stream": 7}
    assert told["cuModuleLoadData"] is None  # the other is another process'
