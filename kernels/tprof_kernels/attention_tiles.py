"""What the attention kernels share: where a query stands among the keys, and reading tiles with masks.

Query i of n_q stands at key i + n_kv - n_q: the last query stands at the last key, as when new tokens are appended to
a cache. It sees key j if position - left < j < position + right; a bound of 0 is none.
"""

from __future__ import annotations

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)  # exp(x) = exp2(x * LOG2E): exp2 is one instruction of the GPU
INF = tl.constexpr(float("inf"))
PRECISION = tl.constexpr("tf32x3")  # of float32 products; exact ones spill hundreds of registers and compile for 10 s
LARGEST_DIM = 128  # wider tiles do not fit the registers


def check_heads(heads: int, kv_heads: int, dim: int) -> None:
    """Heads can share key heads, and a head fits a tile.

    Raises:
        ValueError: they cannot, or it does not.
    """
    if heads % max(1, kv_heads) or (heads and not kv_heads):
        raise ValueError(f"{heads} heads cannot share {kv_heads} of keys equally; repeat those, or pad q")
    if dim > LARGEST_DIM:
        raise ValueError(f"dim is {dim}, but at most {LARGEST_DIM} fit; use torch's scaled_dot_product_attention")


@triton.jit
def tile_offsets(rows, dims, step, step_d):
    """Offsets of rows x dims from a first row; they do not change in a loop, so only a scalar is added to the base."""
    return rows[:, None] * step + dims[None, :] * step_d


@triton.jit
def load_tile(base, offsets, rows, n, dims, DIM: tl.constexpr, BLOCK_D: tl.constexpr, CHECKED: tl.constexpr):
    """A tile of rows x dims; 0 in the padding of the head dimension and, if CHECKED, in rows from n on.

    Without need for a mask there is none: a plain load is what the compiler can copy in the background.
    """
    if DIM == BLOCK_D:
        if CHECKED:  # noqa: SIM108 - a static branch
            tile = tl.load(base + offsets, (rows < n)[:, None], other=0.0)
        else:
            tile = tl.load(base + offsets)
    else:
        mask = (dims < DIM)[None, :]
        if CHECKED:
            mask = mask & (rows < n)[:, None]
        tile = tl.load(base + offsets, mask, other=0.0)
    return tile


@triton.jit
def is_visible(position, key, n_kv, left, right, LEFT: tl.constexpr, RIGHT: tl.constexpr):
    """Whether a query at a position sees a key; both broadcast."""
    visible = key < n_kv
    if RIGHT:
        visible = visible & (key < position + right)
    if LEFT:
        visible = visible & (key > position - left)
    return visible


@triton.jit
def key_stretches(position, n_kv, left, right, LEFT: tl.constexpr, RIGHT: tl.constexpr, ROWS: tl.constexpr, STEP):
    """Keys for a block of rows whose first stands at `position`: (low, full, high).

    From low to full every row sees every key, and from full to high a mask must tell; both begin at a multiple of STEP.
    A sliding window masks all its few blocks, which saves a third loop and its compile time.
    """
    low, full, high = 0, n_kv // STEP * STEP, n_kv
    if RIGHT:
        high = tl.minimum(n_kv, position + ROWS - 1 + right)
        full = tl.minimum(full, tl.maximum(position + right, 0) // STEP * STEP)
    if LEFT:
        low = tl.maximum(position - left + 1, 0) // STEP * STEP
        full = low
    return low, full, high


@triton.jit
def row_stretches(key, n_q, n_kv, left, right, LEFT: tl.constexpr, RIGHT: tl.constexpr, KEYS: tl.constexpr, STEP):
    """Query rows that see a block of keys, the first of which is `key`: (low, full, high).

    Here the mask is needed from low to full, and from full to high every row sees every key.
    """
    key -= n_kv - n_q  # the row that stands at this key
    low, full, high = 0, 0, n_q
    if RIGHT:
        low = tl.maximum(key - right + 1, 0) // STEP * STEP
        full = tl.cdiv(tl.maximum(key + KEYS - right, 0), STEP) * STEP
    if LEFT:
        high = tl.minimum(n_q, key + KEYS - 1 + left)
        full = high
    return low, full, high


@triton.jit
def load_lse(lse, rows, n_q):
    """Log-sum-exp of rows, to the base 2; +inf, so that exp2(score - lse) is 0, where a row sees nothing or is none."""
    # no global constants in what several kernels call: Triton 3.5 to 3.7 puts them into a key by the order of uses
    value = tl.load(lse + rows, rows < n_q, other=float("inf"))
    return tl.where(value == float("-inf"), float("inf"), value) * 1.4426950408889634  # LOG2E
