"""Every file of the shared cases gives the reading that their README states."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tprof.errors import SourceError
from tprof.model import codes, ints
from tprof.read import read_file

if TYPE_CHECKING:
    from pathlib import Path

    from tprof.model import Trace


def small(cases: Path, name: str) -> Trace:
    return read_file(cases / "torch" / name)


def counts(trace: Trace) -> tuple[int, int]:
    return trace.host.num_rows, trace.device.num_rows


def noted(trace: Trace) -> dict[str, int]:
    return {note.code: note.count for note in trace.notes}


def device(trace: Trace) -> list[tuple[str, int, int, int]]:
    return [(r["name"], r["stream"], r["start_ns"], r["end_ns"]) for r in trace.device.to_pylist()]


def skipped(trace: Trace) -> dict[str, int]:
    return json.loads(trace.sources["rows_skipped"][0].as_py())


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("bad_backslash.json", "bad-escape"),
        ("bad_metadata_quote.json", "bad-header"),
        ("control_char.json", "control-character"),
        ("non_utf8.json", "not-utf8"),
    ],
)
def test_damaged_text_keeps_its_three_events(cases: Path, name: str, code: str) -> None:
    trace = small(cases, name)
    assert counts(trace) == (2, 1)
    assert noted(trace) == {code: 1}
    assert device(trace) == [("k0", 7, 2_000, 3_000)]
    assert trace.devices["name"].to_pylist() == ["Test GPU"]
    assert "line" in trace.notes[0].message


def test_backslashes_of_a_windows_path_stay(cases: Path) -> None:
    assert small(cases, "bad_backslash.json").host["name"][0].as_py() == r"torch\cuda\__init__.py(219): _lazy_init"


def test_bad_header_is_located(cases: Path) -> None:
    assert "line 3)" in small(cases, "bad_metadata_quote.json").notes[0].message


def test_ascend_strings_are_exact_and_free_is_not_work(cases: Path) -> None:
    trace = small(cases, "ascend_string_ts.json")
    assert device(trace) == [
        ("MatMulV2", 2, 1704161511420306491, 1704161511420316991),
        ("Add", 2, 1704161511420317001, 1704161511420319001),
    ]
    assert trace.meta["platform"] == "Ascend"
    assert trace.epoch_ns == 0
    assert skipped(trace)["derived"] == 1
    assert trace.host["name"].to_pylist() == ["aten::add"]


def test_bare_list_of_the_old_profiler(cases: Path) -> None:
    trace = small(cases, "bare_list_cpu_functions.json")
    assert device(trace) == [("aten::mul", 0, 160_000, 180_000)]
    assert [(r["kind"], r["end_ns"] - r["start_ns"]) for r in trace.host.to_pylist()] == [("op", 54_250)]
    assert "no kernel names" in next(n.message for n in trace.notes if n.code == "old-autograd-format")


def test_cpu_only(cases: Path) -> None:
    trace = small(cases, "cpu_only.json")
    assert counts(trace) == (1, 0)
    assert noted(trace) == {"no-device-events": 1}
    assert skipped(trace) == {"i": 1, "Trace": 1}


def test_cuda_graph(cases: Path) -> None:
    trace = small(cases, "cuda_graph.json")
    assert counts(trace) == (1, 5)
    assert ints(trace.device, "correlation").tolist() == [77, 77, 77, 77, 99]
    assert ints(trace.device, "graph_node").tolist() == [12884901888 + n for n in range(4)] + [-1]


def test_duplicate_keys_last_wins(cases: Path) -> None:
    trace = small(cases, "dup_keys.json")
    assert device(trace) == [("a", 8, 9_000, 11_000)]
    assert [note.code for note in trace.notes] == ["duplicate-key"]


def test_no_events(cases: Path) -> None:
    trace = small(cases, "empty_events.json")
    assert counts(trace) == (0, 0)
    assert noted(trace) == {"no-events": 1}


def test_gpu_annotations_and_syncs_are_no_work(cases: Path) -> None:
    trace = small(cases, "gpu_user_annotation.json")
    assert device(trace) == [("k", 7, 20_000, 30_000), ("k", 7, 80_000, 90_000)]
    assert trace.host["name"].to_pylist().count("ProfilerStep#1") == 1
    assert skipped(trace) == {"gpu_user_annotation": 1, "cuda_sync": 1}


@pytest.mark.parametrize("name", ["gz_named_json.json", "plain_named.json.gz"])
def test_content_not_name_says_what_is_gzip(cases: Path, name: str) -> None:
    assert sum(counts(small(cases, name))) == 100


def test_legacy_categories(cases: Path) -> None:
    trace = small(cases, "legacy18.json")
    assert device(trace) == [
        ("add_k", 7, 1600000000000020000, 1600000000000023000),
        ("Memcpy HtoD (Pageable -> Device)", 7, 1600000000000030000, 1600000000000032000),
    ]
    assert trace.device["kind"].to_pylist() == ["kernel", "memcpy"]
    assert trace.device["bytes"].to_pylist() == [None, 4096]
    assert trace.host["kind"].to_pylist() == ["op", "runtime"]
    assert ints(trace.host, "correlation").tolist() == [-1, 5]
    assert ints(trace.host, "external_id").tolist() == [2, 2]
    assert noted(trace) == {"dropped-rows": 1}
    assert trace.sources["rows_dropped"][0].as_py() == 1


def test_nan_and_infinity(cases: Path) -> None:
    trace = small(cases, "nan_inf.json")
    assert device(trace) == [("c", 7, 5_000, 8_000)]
    assert noted(trace)["not-a-number"] == 2


def test_execution_trace_is_refused_by_name(cases: Path) -> None:
    with pytest.raises(SourceError, match=r"not_a_trace\.json: is an execution trace"):
        small(cases, "not_a_trace.json")


def test_rocm(cases: Path) -> None:
    trace = small(cases, "rocm_hip.json")
    assert trace.meta["platform"] == "ROCm"
    assert device(trace) == [("triton_red_fused_sum_0", 7, 3_020_000, 3_027_000)]
    load = trace.host.to_pylist()[0]
    assert (load["name"], load["end_ns"] - load["start_ns"]) == ("hipModuleLoadData", 3_000_000)


def test_array_without_end(cases: Path) -> None:
    trace = small(cases, "trailing_comma.json")
    assert device(trace) == [("a", 7, 1_000, 3_000)]
    assert trace.notes == ()


def test_python_frames(cases: Path) -> None:
    trace = small(cases, "triton_jit_stack.json")
    length = {r["name"]: r["end_ns"] - r["start_ns"] for r in trace.host.to_pylist()}
    assert length["triton/compiler/compiler.py(240): compile"] == 300_000_000
    assert length["triton/backends/nvidia/compiler.py(400): make_cubin"] == 90_000_000
    assert trace.host["kind"].to_pylist() == ["python"] * 5 + ["driver"] * 2


def test_cut_gzip_gives_what_inflates(cases: Path) -> None:
    trace = small(cases, "truncated.json.gz")
    assert sum(counts(trace)) == 47
    assert {"cut-gzip", "cut-json"} <= set(noted(trace))


# ---- real traces, against values of an independent reader


def real_names() -> list[str]:
    return [
        "hta_amd_trace", "hta_critical_path_alexnet", "hta_critical_path_cuda_event_sync_multi_stream",
        "hta_triton_example", "hta_nccl_parser_config", "hta_ns_resolution_trace", "hta_trace_filter_sampled_rank-0",
        "hta_trace_filter_sampled_rank-1", "hta_mtia_inference_trace", "hta_distributed_info_unavailable",
        "hta_cpu_only", "tl_h100__Falconsai_nsfw_image_detection__1016002",
        "tl_inference__vllm_decode_full__graph_execution", "tl_inference__sglang_decode__sglang_Qwen3-8B_decode",
        "tl_torch_compile_triton__trace", "tl_mi300__resnet_act_checkpoint",
        "tl_mi300__gaunernst_bert-small-uncased__1016001", "tl_b200__eager_trace", "param_resnet_kineto",
        "kineto_resnet50_num_workers_0_1623143089861", "kineto_before_fix_trace",
    ]  # fmt: skip


@pytest.mark.parametrize("name", real_names())
def test_real_traces_agree_with_the_truth(cases: Path, name: str) -> None:
    folder = cases / "torch_real"
    truth = json.loads((folder / "truth.json").read_text())[name]
    trace = read_file(next(p for p in folder.iterdir() if p.name.startswith(name)))
    start, end = ints(trace.device, "start_ns"), ints(trace.device, "end_ns")
    assert trace.device.num_rows == truth.get("gpu_events", 0)
    assert int((end - start).sum()) == truth.get("gpu_event_sum_ns", 0)
    assert _streams(trace) == {k: (v["n"], v["sum_ns"]) for k, v in truth.get("streams", {}).items()}
    if len(start):
        assert int(end.max() - start.min()) == truth["gpu_span_ns"]


def _streams(trace: Trace) -> dict[str, tuple[int, int]]:
    ordinal = np.array(trace.devices["ordinal"].to_pylist(), np.int64)[ints(trace.device, "device")]
    stream, length = ints(trace.device, "stream"), ints(trace.device, "end_ns") - ints(trace.device, "start_ns")
    out: dict[str, tuple[int, int]] = {}
    for where, which, ns in zip(ordinal.tolist(), stream.tolist(), length.tolist(), strict=True):
        n, total = out.get(f"dev{where}/stream{which}", (0, 0))
        out[f"dev{where}/stream{which}"] = n + 1, total + ns
    return out


def test_h200_cold_start(traces: Path) -> None:
    trace = read_file(traces / "h200-cold-start" / "torch_profiler_2.11.pt.trace.json.gz")
    assert counts(trace) == (192_241, 37_345)
    assert trace.notes == ()
    assert trace.devices["name"].to_pylist() == ["NVIDIA H200"]
    assert trace.host["start_ns"][0].as_py() == 5125955178576351
    kinds, values = codes(trace.host, "kind")
    assert {v: int((kinds == c).sum()) for c, v in enumerate(values) if (kinds == c).any()} == {
        "op": 40_133, "range": 170, "overhead": 41, "runtime": 131_427, "driver": 20_470,
    }  # fmt: skip
