"""Which implementation each operator really ran: path, library, module, per input shape."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from support.small import call, kernel, span, trace

from tprof.align import AlignOptions, align
from tprof.align.paths import library
from tprof.analyze import Attribution, Options, kernels
from tprof.model import table

Row = dict[str, Any]
GEMM, FILL = "nvjet_sm90_tst_64x64_64x13_2x1_v_bz_bias_TNT", "void at::native::vectorized_elementwise_kernel<4>(int)"
HOST = [
    span(0, 100, "aten::linear", "op", shape_key="float[2,4]:[4,1]"),
    span(10, 90, "aten::mm", "op", shape_key="float[2,4]:[4,1]"),
    span(15, 80, "model.py(3): f", "python"),
    call(20, 30, correlation=1), call(40, 50, correlation=2),
    span(200, 300, "aten::mm", "op", shape_key="float[8,4]:[4,1]"), call(210, 220, correlation=3),
    call(400, 410, correlation=4, kernel="attention", shape_key="grid 4 q float32[8] M=8"),
    call(420, 430, "cudaMemcpyAsync", correlation=5),
]  # fmt: skip
DEVICE = [
    kernel(35, 45, GEMM, correlation=1),
    kernel(55, 58, FILL, correlation=2),
    kernel(225, 245, GEMM, correlation=3),
    kernel(415, 465, "attention", correlation=4),
    kernel(470, 475, "Memcpy HtoD", correlation=5, kind="memcpy"),
    kernel(480, 481, "triton_poi_fused_add_0"),
]


def paths(
    host: list[Row] = HOST, device: list[Row] = DEVICE, phases: dict[str, str] | None = None, **asked: Any
) -> list[Row]:
    found = align(trace(host, device), AlignOptions(phases or {}))
    known = {"pid": [1], "process": [0], "function": ["serve.attn.attention"], "kernel": ["attention"]}
    found = replace(found, specializations=table("specializations", known))
    return kernels(Attribution(found), Options(**asked)).to_dict()["paths"]


def test_each_operator_and_shape_has_its_path_and_whose_kernel_it_was() -> None:
    rows = paths()
    assert [(r["operator"], r["label"], r["path"], r["implementation"], r["calls"], r["total_ns"]) for r in rows] == [
        ("attention", "q float32[8] M=8", "triton", "serve.attn.attention", 1, 50),
        ("aten::mm", "arg0[0]=8", "library", "cuBLAS", 1, 20),
        ("aten::mm", "arg0[0]=2", "library", "cuBLAS", 1, 10),
        ("Memcpy HtoD", None, "memory", None, 1, 5),
        ("aten::mm", "arg0[0]=2", "aten", "PyTorch", 1, 3),
        ("triton_poi_fused_add_0", None, "inductor", "Inductor", 1, 1),
    ]
    assert sum(r["of_work_share"] for r in rows) == pytest.approx(1)
    assert [r["basis"] for r in rows] == ["recorded"] + ["inferred"] * 5


def test_kernels_of_one_call_are_one_call() -> None:
    host = [span(0, 100, "aten::sum", "op"), call(10, 20, correlation=1), call(30, 40, correlation=2)]
    (row,) = paths(host, [kernel(50, 60, FILL, correlation=1), kernel(60, 65, FILL + "2", correlation=2)])
    assert (row["calls"], row["executions"], row["kernels"], row["kernel"]) == (1, 2, 2, FILL)


def test_a_replay_of_a_graph_is_a_call_of_the_operator_that_was_captured() -> None:
    host = [*HOST, call(500, 510, "cudaGraphLaunch", correlation=6), call(600, 610, "cudaGraphLaunch", correlation=7)]
    device = [kernel(at, at + 7, GEMM, correlation=n, capture=6) for at, n in ((520, 6), (620, 7))]
    (row,) = paths(host, device)
    assert (row["operator"], row["shape"], row["calls"]) == ("aten::mm", "float[8,4]:[4,1]", 2)


def test_tuning_is_no_operators_choice() -> None:
    host = [span(0, 100, "tune"), call(10, 20, correlation=1), call(200, 210, correlation=2)]
    device = [kernel(30, 90, "mm", correlation=1), kernel(220, 230, "mm", correlation=2)]
    assert [(r["calls"], r["total_ns"]) for r in paths(host, device, {"tune": "autotune"})] == [(1, 10)]


def test_a_window_and_top_limit_it() -> None:
    assert [r["operator"] for r in paths(window=(400, 470))] == ["attention"]
    assert len(paths(top=2)) == 2
    assert paths([], []) == []


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (GEMM, "cuBLAS"),
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x4_tn", "cuBLAS"),
        ("void cublasLt::splitKreduce_kernel<32, 16>(float)", "cuBLAS"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm>(Params)", "CUTLASS"),
        ("sm80_xmma_fprop_implicit_gemm_bf16bf16_bf16f32", "cuDNN"),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float>()", "cuDNN"),
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits<128>>(Flash_fwd_params)", "FlashAttention"),
        ("void cub::DeviceRadixSortOnesweepKernel<int>()", "CUB"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "NCCL"),
        ("Cijk_Ailk_Bljk_HHS_BH_MT128x128x16", "rocBLAS"),
        ("my_kernel", None),
    ],
)
def test_a_library_by_the_name_of_its_kernel(name: str, said: str | None) -> None:
    assert library(name) == said
