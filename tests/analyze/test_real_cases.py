"""Real and odd recordings: what an independent reader measured, and that no nanosecond is lost or counted twice."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import tprof.facade
from tprof.analyze import Options
from tprof.errors import SourceError
from tprof.model import ints

CASES = Path(os.environ.get("TPROF_CASES") or Path(__file__).resolve().parents[2] / "../shared/cases").resolve()
FOLDERS = ("torch", "torch_real", "nsight", "nsight/own")
FILES = [
    str(path.relative_to(CASES))
    for folder in FOLDERS
    for path in sorted((CASES / folder).glob("*"))
    if path.name.endswith((".json", ".json.gz", ".sqlite.gz")) and path.name not in ("truth.json", "not_a_trace.json")
]
TRUTH: dict[str, Any] = json.loads((CASES / "torch_real/truth.json").read_text()) if FILES else {}
DEVICE_KEYS = {
    "span_ns": "gpu_span_ns",
    "busy_ns": "gpu_busy_union_ns",
    "idle_ns": "gpu_idle_ns",
    "sum_ns": "gpu_event_sum_ns",
}
STREAM_KEYS = {"events": "n", "busy_ns": "busy_union_ns", "idle_ns": "idle_ns", "overlaps": "overlaps"}
WAIT_KEYS = {
    "host_wait_ns": "host_wait_ns(launch starts after prev end)",
    "kernel_wait_ns": "kernel_wait_ns(gap<30us)",
    "other_ns": "other_ns",
    "unlinked_ns": "unlinked_ns",
}

Row = dict[str, Any]
each_file = pytest.mark.parametrize(
    "name", FILES or [pytest.param("", marks=pytest.mark.skip("the shared cases are absent"))]
)
each_truth = pytest.mark.parametrize(
    "name", sorted(TRUTH) or [pytest.param("", marks=pytest.mark.skip("the shared cases are absent"))]
)


@cache
def load(name: str) -> tprof.facade.Trace:
    return tprof.facade.load(CASES / name)


def real(name: str) -> tprof.facade.Trace:
    return load(next(f for f in FILES if f.startswith(f"torch_real/{name}.json")))


def small(name: str) -> tprof.facade.Trace:
    if not FILES:
        pytest.skip("the shared cases are absent")
    return load(f"torch/{name}.json")


def devices(trace: tprof.facade.Trace, window: tuple[int, int] | None = None) -> list[Row]:
    return trace.summary(Options(window=window)).to_dict()["devices"]


def assert_conserved(row: Row, wall: int) -> None:
    assert sum(row["busy_by_purpose"].values()) == row["busy_ns"]
    assert sum(row["idle_by_phase"].values()) == row["idle_ns"]
    assert sum(row["wall_by_phase"].values()) == wall == sum(row[f"{w}_ns"] for w in ("busy", "idle", "lead", "tail"))
    for figures in (row["busy_by_purpose"], row["idle_by_phase"], row["wall_by_phase"]):
        assert all(ns > 0 for ns in figures.values())
    for stream in row["streams"]:
        assert sum(stream["hta_wait"].values()) == stream["idle_ns"] >= 0
    assert row["busy_ns"] <= sum(stream["busy_ns"] for stream in row["streams"]) <= row["sum_ns"]
    assert 0 <= row["inferred_ns"] <= wall


@each_file
def test_nothing_is_lost_or_counted_twice(name: str) -> None:
    trace = load(name)
    whole = trace.summary().to_dict()
    start, end, wall = whole["window"].values()
    for row in whole["devices"]:
        assert_conserved(row, wall)
    for request in trace.requests().to_dict()["requests"]:
        assert sum(request["phases"].values()) == request["wall_ns"]
        assert 0 <= request["cold_exposed_ns"] <= request["cold_tax_ns"] <= request["wall_ns"]
    third = start + wall // 3
    left, right = devices(trace, (start - 5, third)), devices(trace, (third, end + 7))
    for of_whole, of_left, of_right in zip(whole["devices"], left, right, strict=True):
        assert_conserved(of_left, third - start + 5)
        assert_conserved(of_right, end + 7 - third)
        for key in ("busy_ns", "idle_ns", "sum_ns"):
            assert of_whole[key] == of_left[key] + of_right[key]
        assert of_whole["lead_ns"] + 5 == of_left["lead_ns"] + of_right["lead_ns"]
        assert of_whole["tail_ns"] + 7 == of_left["tail_ns"] + of_right["tail_ns"]


@each_file
def test_every_answer_has_a_table(name: str) -> None:
    trace = load(name)
    for result in (trace.summary(), trace.idle(), trace.cold(), trace.kernels(), trace.requests()):
        json.dumps(result.to_dict(), allow_nan=False)
        assert len(result.frame) == len(next(iter(result.tables.values())))
    kernels = trace.kernels().to_dict()["kernels"]
    assert sum(row["calls"] for row in kernels) == trace.device.num_rows
    assert sum(row["total_ns"] for row in kernels) == sum(row["sum_ns"] for row in devices(trace))


@each_truth
def test_devices_equal_the_truth(name: str) -> None:
    rows, expected = devices(real(name)), TRUTH[name]
    assert sum(row["events"] for row in rows) == expected["gpu_events"]
    if not expected["gpu_events"]:
        assert rows == []
        return
    (row,) = rows
    assert {key: row[key] for key in DEVICE_KEYS} == {key: expected[theirs] for key, theirs in DEVICE_KEYS.items()}
    assert row["overlaps"] == sum(stream["overlaps"] for stream in expected["streams"].values())


@each_truth
def test_streams_equal_the_truth(name: str) -> None:
    found = {f"dev{row['device']}/stream{s['stream']}": s for row in devices(real(name)) for s in row["streams"]}
    expected = TRUTH[name]["streams"]
    assert found.keys() == expected.keys()
    for stream, row in found.items():
        flat = {**{key: row[key] for key in STREAM_KEYS}, **row["hta_wait"]}
        assert flat == {key: expected[stream][theirs] for key, theirs in (STREAM_KEYS | WAIT_KEYS).items()}


@each_truth
def test_launches_are_linked_as_the_truth_has_it(name: str) -> None:
    trace, expected = real(name), TRUTH[name].get("launch_to_start_ns")
    launch = ints(trace.device, "launch")
    linked = launch >= 0
    lag = (
        ints(trace.device, "start_ns")[linked] - ints(trace.host, "start_ns")[launch[linked]]
        if linked.any()
        else launch[:0]
    )
    if expected is None:
        assert len(lag) == 0
        return
    found = {"n": len(lag), "min": int(lag.min()), "max": int(lag.max()), "negative": int((lag < 0).sum())}
    assert found == {key: expected[key] for key in found}


@each_truth
def test_profiler_steps_are_the_requests_of_a_training_trace(name: str) -> None:
    assert len(real(name).requests().to_dict()["requests"]) == TRUTH[name]["profiler_steps"]


# ---- what the README of the small cases says


def test_a_trace_without_a_device_has_no_utilisation() -> None:
    summary = small("cpu_only").summary().to_dict()
    assert summary["devices"] == []
    assert summary["window"]["wall_ns"] == 5_000


def test_an_empty_trace_is_an_empty_answer() -> None:
    summary = small("empty_events").summary().to_dict()
    assert (summary["devices"], summary["requests"], summary["window"]["wall_ns"]) == ([], [], 0)


def test_kernels_of_a_graph_wait_inside_it_and_the_orphan_is_unattributed() -> None:
    (row,) = devices(small("cuda_graph"))
    assert (row["events"], row["unlinked"]) == (5, 1)
    assert row["idle_by_phase"] == {"unattributed": 21_000, "graph": 3_000}
    assert row["streams"][0]["hta_wait"]["unlinked_ns"] == 21_000


def test_annotations_and_waits_on_the_device_track_are_no_work() -> None:
    trace = small("gpu_user_annotation")
    (row,) = devices(trace)
    assert (row["busy_ns"], row["idle_ns"]) == (20_000, 50_000)
    assert row["streams"][0]["hta_wait"] == {
        "host_wait_ns": 0,
        "kernel_wait_ns": 0,
        "other_ns": 50_000,
        "unlinked_ns": 0,
    }
    assert len(trace.requests().to_dict()["requests"]) == 1


def test_a_kernel_at_zero_does_not_stretch_the_span() -> None:
    (row,) = devices(small("legacy18"))
    assert (row["span_ns"], row["busy_ns"], row["idle_ns"]) == (12_000, 5_000, 7_000)


def test_nested_frames_of_the_compiler_are_not_summed() -> None:
    trace = small("triton_jit_stack")
    cold = trace.cold().to_dict()["cold"]
    assert (cold["compile_ns"], cold["module_load_ns"]) == (300_000_000, 20_000_000)
    (row,) = devices(trace)
    assert row["wall_by_phase"]["lead.compile"] == 300_000_000
    assert row["wall_by_phase"]["lead.module_load"] == 20_000_000
    assert {s["basis"] for s in trace.cold().to_dict()["spans"]} == {"recorded"}


def test_a_hip_module_load_is_recorded() -> None:
    cold = small("rocm_hip").cold().to_dict()["cold"]
    assert (cold["module_loads"], cold["module_load_ns"]) == (1, 3_000_000)


def test_an_execution_trace_is_refused_by_name(cases: Path) -> None:
    with pytest.raises(SourceError, match="Chakra"):
        tprof.facade.load(cases / "torch" / "not_a_trace.json")
