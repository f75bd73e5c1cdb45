"""Who wrote a kernel, judged by its name: the path column of device events.

A name is indirect evidence: a C-linkage CUDA kernel without a known library's prefix looks like a user's Triton kernel.
Nothing is called cold by its name alone (see `infer`).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.events import PATHS, Path
from tprof.intervals import NONE
from tprof.model import codes, labels, put

if TYPE_CHECKING:
    import pyarrow as pa

_COLLECTIVE = re.compile(
    r"nccl|rccl|mscclpp|cross_device_reduce|one_?shot_?all_?reduce|two_?shot_?all_?reduce|multimem_all", re.IGNORECASE
)
_INDUCTOR = re.compile(r"^triton_(per|poi|red|tem|for|spl|mm|bmm|helion|unk)_|^triton_.*_fused_")
_ATEN = re.compile(r"\bat::|\bat_cuda|\bc10::|^_ZN2at|vectorized_elementwise_kernel|^elementwise_kernel|^reduce_kernel")
_LIBRARY = re.compile(
    r"^nvjet|cutlass|^ampere_|^hopper_|^volta_|^turing_|^maxwell_|^sm\d{2,3}_|[_a-z][sS]m\d{2,3}[a-z]?(_|[A-Z]|$)|xmma|cublas|cudnn|"
    r"^cask|cufft|cusparse|cusolver|splitK|gemv|gemm|^Cijk_|miopen|rocblas|hipblas|ck_tile|^_ZN2ck|flash_|fmha|flashinfer|"
    r"\bcub::|thrust::|^bmm_|marlin|deep_gemm|implicit_convolve|fft2d|winograd|^dgrad|^wgrad|batch_norm_.*cudnn",
    re.IGNORECASE,
)  # fmt: skip
_IDENTIFIER = re.compile(r"^[A-Za-z_]\w*$")


@lru_cache(maxsize=65536)
def kernel_path(name: str) -> Path:
    """Path of a kernel (not of a memory operation) by its name."""
    if _COLLECTIVE.search(name):
        return "collective"
    if _INDUCTOR.search(name):
        return "inductor"
    if _ATEN.search(name):
        return "aten"
    if _LIBRARY.search(name):
        return "library"
    if _IDENTIFIER.match(name) and not name.startswith("_Z"):
        return "triton"
    return "other"


# The first that matches; a CUTLASS kernel that cuBLAS ships is called CUTLASS, since its name says no more.
_LIBRARIES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), name)
    for pattern, name in (
        (r"flashinfer", "FlashInfer"),
        (r"flash_|fmha", "FlashAttention"),
        (r"cudnn|implicit_convolve|winograd|fft2d|^dgrad|^wgrad|xmma_(fprop|dgrad|wgrad)", "cuDNN"),
        (r"cutlass", "CUTLASS"),
        (r"^nvjet|cublas|splitK|gemv|^(ampere|hopper|volta|turing|maxwell)_|^sm\d{2,3}_|xmma_gemm|^gemm", "cuBLAS"),
        (r"\bcub::", "CUB"),
        (r"thrust::", "Thrust"),
        (r"cufft", "cuFFT"),
        (r"cusparse", "cuSPARSE"),
        (r"cusolver", "cuSOLVER"),
        (r"^Cijk_|rocblas|hipblas", "rocBLAS"),
        (r"miopen", "MIOpen"),
        (r"ck_tile|^_ZN2ck", "Composable Kernel"),
        (r"marlin", "Marlin"),
        (r"deep_gemm", "DeepGEMM"),
        (r"nccl", "NCCL"),
        (r"rccl", "RCCL"),
        (r"mscclpp", "MSCCL++"),
    )
)


@lru_cache(maxsize=65536)
def library(name: str) -> str | None:
    """Which library a kernel of path `library` or `collective` is from, by its name; None where that does not say."""
    return next((library for pattern, library in _LIBRARIES if pattern.search(name)), None)


_BY_KIND: Final[dict[str, Path]] = {"memcpy": "memory", "memset": "memory", "graph": "other"}
FILL: Final = re.compile(r"FillFunctor|fill|memset|zero", re.IGNORECASE)


def add_paths(device: pa.Table) -> pa.Table:
    """Fill the `path` column."""
    name, names = codes(device, "name")
    kind, kinds = codes(device, "kind")
    by_name = np.array([PATHS.index(kernel_path(n)) for n in names] or [0], np.int32)
    by_kind = np.array([PATHS.index(_BY_KIND[k]) if k in _BY_KIND else NONE for k in kinds] or [0], np.int32)
    path = by_kind[kind] if len(kind) else np.zeros(0, np.int32)
    path = np.where(path == NONE, by_name[name] if len(name) else path, path)
    return put(device, path=labels(path, PATHS))
