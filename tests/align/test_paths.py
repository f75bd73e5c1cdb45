"""Who wrote a kernel, by its name."""

from __future__ import annotations

import pytest
from support.small import kernel, trace

from tprof.align.paths import FILL, add_paths, kernel_path


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("matmul", "triton"),
        ("_attn_fwd", "triton"),
        ("triton_per_fused_gelu_native_layer_norm_0", "inductor"),
        ("triton_poi_fused_add_1", "inductor"),
        ("nvjet_sm90_tst_64x64_64x13_2x1_v_bz_bias_TNT", "library"),
        ("ampere_sgemm_128x64_tn", "library"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32", "library"),
        ("void cutlass::Kernel2<cutlass_80_wmma>(int)", "library"),
        ("flash_fwd_kernel", "library"),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", "library"),
        ("Cijk_Ailk_Bljk_SB_MT64x64x32", "library"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>(int)", "aten"),
        ("void at::native::(anonymous namespace)::distribution_elementwise(int)", "aten"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)", "collective"),
        ("void my::kernel<float>(float*)", "other"),
        ("_Z6kernelPf", "other"),
    ],
)
def test_path_of_a_kernel(name: str, expected: str) -> None:
    assert kernel_path(name) == expected


def test_memory_operations_have_their_own_path_whatever_they_are_called() -> None:
    rows = [
        kernel(0, 1, "matmul"),
        kernel(1, 2, "Memcpy HtoD", kind="memcpy"),
        kernel(2, 3, "Memset", kind="memset"),
        kernel(3, 4, "g", kind="graph"),
    ]
    assert add_paths(trace([], rows).device)["path"].to_pylist() == ["triton", "memory", "memory", "other"]
    assert add_paths(trace().device)["path"].to_pylist() == []


def test_fills_by_name() -> None:
    assert all(FILL.search(n) for n in ("FillFunctor<int>", "Memset (Device)", "zero_kernel"))
    assert not FILL.search("matmul")
