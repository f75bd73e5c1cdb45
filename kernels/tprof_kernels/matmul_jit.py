"""The matrix product's kernel, its candidates and buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import triton
import triton.language as tl

from tprof.buckets import BucketSet
from tprof_kernels.activations import activate
from tprof_kernels.products import dot
from tprof_kernels.tuned import Tuned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@triton.jit(do_not_specialize=["M", "bucket"])
def matmul_tiles(
    out, a, b, bias, residual, M, N, K, M_aligned, a_b, a_m, a_k, b_b, b_k, b_n, r_b, r_m, r_n, bucket,
    ACTIVATION: tl.constexpr, PRECISION: tl.constexpr, EVEN_K: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BYTES_K: tl.constexpr, GROUP_M: tl.constexpr,
):  # fmt: skip
    """A program owns one BLOCK_M x BLOCK_N tile of one matrix of the batch, and walks K once, BYTES_K bytes at a time.

    M is the number of tokens: unspecialized, so that a new one compiles nothing. Only where `a` is column-major does
    its divisibility decide on 16-byte loads; then it comes again as `M_aligned`, which is specialized (else None).
    """
    # Programs run in order of their number: in groups of GROUP_M tiles down, then right, so that those that run at one
    # time share rows of a and columns of b in the L2 cache.
    across, down = tl.cdiv(N, BLOCK_N), tl.cdiv(M, BLOCK_M)
    batch, pid = tl.program_id(0) // (across * down), tl.program_id(0) % (across * down)
    group, inside = pid // (GROUP_M * across), pid % (GROUP_M * across)
    height = tl.minimum(down - group * GROUP_M, GROUP_M)
    rows = (group * GROUP_M + inside % height) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = inside // height * BLOCK_N + tl.arange(0, BLOCK_N)

    BLOCK_K: tl.constexpr = BYTES_K * 8 // a.dtype.element_ty.primitive_bitwidth
    ks = tl.arange(0, BLOCK_K)
    row_mask = (rows < (M if M_aligned is None else M_aligned))[:, None]
    col_mask = (cols < N)[None, :]
    a += batch * a_b + rows[:, None] * a_m + ks[None, :] * a_k
    b += batch * b_b + ks[:, None] * b_k + cols[None, :] * b_n
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        if EVEN_K:
            a_tile, b_tile = tl.load(a, row_mask, other=0.0), tl.load(b, col_mask, other=0.0)
        else:  # the last step's lanes past K add 0
            a_tile = tl.load(a, row_mask & (ks < K - k)[None, :], other=0.0)
            b_tile = tl.load(b, col_mask & (ks < K - k)[:, None], other=0.0)
        acc = dot(a_tile, b_tile, acc, PRECISION)
        a += BLOCK_K * a_k
        b += BLOCK_K * b_k

    if bias is not None:
        acc += tl.load(bias + cols, cols < N, other=0.0).to(tl.float32)[None, :]
    acc = activate(acc, ACTIVATION)
    mask = (rows < M)[:, None] & col_mask
    if residual is not None:
        acc += tl.load(residual + batch * r_b + rows[:, None] * r_m + cols[None, :] * r_n, mask, other=0.0).to(
            tl.float32
        )
    at = out + batch * M * N + rows[:, None] * N + cols[None, :]
    tl.store(at, acc.to(out.dtype.element_ty), mask)


def _tile(rows: int, cols: int, step: int, warps: int, stages: int) -> triton.Config:
    """A tile of rows x cols; `step` is in bytes, so that one list serves every width of values."""
    meta = {"BLOCK_M": rows, "BLOCK_N": cols, "BYTES_K": step, "GROUP_M": 8}
    return triton.Config(meta, num_warps=warps, num_stages=stages)


SAFE = _tile(64, 64, 64, 4, 2)
DECODE = (  # bound by reading b once: many programs, deep pipelines, the fewest rows that a tensor core takes
    _tile(16, 32, 256, 4, 4),  # the most programs
    _tile(16, 64, 256, 4, 4),  # fewer, with half the reads of a
    _tile(64, 64, 128, 4, 4),  # 17 to 64 rows in one tile
)
LARGE = (  # bound by the tensor cores: the largest tiles that registers and shared memory hold
    _tile(64, 128, 128, 4, 4),  # few tiles: fills the multiprocessors sooner
    _tile(128, 128, 128, 8, 3),  # fits all GPUs from sm_80 on, two programs per multiprocessor on sm_90
    _tile(128, 256, 128, 8, 3),  # the most reuse: 85 operations per byte read from shared memory
)  # not more: 256 x 128 is the mirror of the last, 256 x 256 spills, and other groups than 8 change little
SINGLE = (  # float32 by tf32x3, which keeps parts of both operands in registers: half the step, or they spill
    _tile(64, 128, 64, 4, 4),
    _tile(128, 128, 64, 8, 3),
)
EXACT = (SAFE, _tile(128, 64, 64, 8, 2))  # float32 without tensor cores: larger tiles spill
CANDIDATES = (*DECODE, *LARGE, *SINGLE, *EXACT)

# No key has M, N or K: a backward has the number of tokens as its K, and would search for every new one.
BUCKETS = BucketSet.of(
    "matmul",
    ("matmul_*",),
    decode={"M": "1..64"},
    small={"M": "65..1024"},
    large={"M": "1025..131072"},
)


def prune(configs: Sequence[triton.Config], named_args: Mapping[str, Any], **kwargs: Any) -> list[triton.Config]:
    """The candidates for these values: by their size, the precision, and whether there are few rows."""
    args = {**named_args, **kwargs}
    size = args["a"].element_size()
    if size == 4 and args["PRECISION"] == "ieee":
        wanted: Sequence[triton.Config] = EXACT
    elif args["M"] <= 64:
        wanted = DECODE
    else:  # the largest tile of float8 would spill: it keeps two sums (products.dot)
        wanted = {4: SINGLE, 2: LARGE, 1: LARGE[:2]}[size]
    return [config for config in configs if config in wanted]


TILES = Tuned(matmul_tiles, CANDIDATES, SAFE, BUCKETS, key=("PRECISION",), prune=prune)
