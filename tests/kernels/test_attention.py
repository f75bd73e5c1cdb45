"""Attention: rows that see nothing, large scores, windows, alignment; pages in any order, and what is refused."""

from __future__ import annotations

import math

import pytest
import torch
import triton
from support.kernel_check import DEVICE, check, close, compare
from tprof_kernels import KERNELS
from tprof_kernels.attention import attention
from tprof_kernels.attention_paged import paged_attention
from tprof_kernels.tuned import decisions, forced

SPEC, PAGED = KERNELS["attention"], KERNELS["paged_attention"]
SMALL = triton.Config({"BLOCK_M": 16, "BLOCK_N": 16}, num_warps=1)


def _drawn(n_q, n_kv, heads=1, kv_heads=1, dim=16, seed=0):
    torch.manual_seed(seed)
    return [torch.randn(1, h, n, dim, device=DEVICE) for h, n in ((heads, n_q), (kv_heads, n_kv), (kv_heads, n_kv))]


@pytest.mark.parametrize("causal", [False, True], ids=["all", "causal"])
@pytest.mark.parametrize("window", [None, 2, 17])
@pytest.mark.parametrize(("n_q", "n_kv"), [(33, 33), (17, 47), (47, 17)])
def test_every_stretch_of_keys_with_small_blocks(n_q, n_kv, window, causal):
    args = _drawn(n_q, n_kv, heads=2)
    with forced(SMALL):
        compare(SPEC, args, {"causal": causal, "window": window}, 5e-6)


def test_queries_stand_at_the_end_of_the_keys():
    q, k, v = _drawn(3, 8)
    out = attention(q, k, v, causal=True)
    for i in range(3):  # query i sees the first 6 + i keys
        seen = attention(q[:, :, i : i + 1], k[:, :, : 6 + i], v[:, :, : 6 + i])
        close(out[:, :, i : i + 1], seen.double(), 1e-6)


def test_a_row_that_sees_no_key_gives_zero_and_no_gradient():
    q, k, v = (t.requires_grad_() for t in _drawn(20, 4))
    out, lse = torch.ops.tprof_kernels.attention(q, k, v, 0, 1, 0.25)
    out.sum().backward()
    assert out[0, 0, :16].abs().max() == 0
    assert (lse[0, 0, :16] == -math.inf).all()
    assert lse[0, 0, 16:].isfinite().all()
    assert q.grad[0, 0, :16].abs().max() == 0
    assert all(t.grad.isfinite().all() for t in (q, k, v))


@pytest.mark.parametrize("kwargs", [{"window": 1}, {"window": 1, "causal": True}], ids=["all", "causal"])
def test_a_window_of_one_copies_the_value(kwargs):
    q, k, v = _drawn(35, 35)
    bits = 23 if DEVICE == "cpu" else 20  # tensor cores multiply parts of float32 values that hold 21 of their 24 bits
    torch.testing.assert_close(attention(q, k, v, **kwargs), v, rtol=2**-bits, atol=0)


def test_the_log_sum_exp_is_of_scaled_scores():
    q, k, v = _drawn(5, 37)
    _, lse = torch.ops.tprof_kernels.attention(q, k, v, 0, 0, 0.5)
    close(lse, torch.logsumexp(0.5 * q.double() @ k.double().mT, -1), 1e-6)


def test_large_scores_neither_overflow_nor_lose_the_row():
    q, k, v = _drawn(16, 40)
    compare(SPEC, [1e3 * q, 1e3 * k, v], {}, 1e-5, gradients=False)


def test_a_nan_spoils_only_the_rows_that_see_it():
    q, k, v = _drawn(40, 40)
    k[0, 0, 20, 3] = math.nan
    bad = attention(q, k, v, causal=True).isnan().any(-1)[0, 0]
    assert bad.tolist() == [False] * 20 + [True] * 20


def test_gradients_are_the_same_bits_in_every_run():
    args = [t.requires_grad_() for t in _drawn(33, 40, heads=4)]
    runs = [torch.autograd.grad(attention(*args, causal=True).sum(), args) for _ in range(2)]
    assert all(torch.equal(a, b) for a, b in zip(*runs, strict=True))


def test_an_undeclared_length_is_served_without_a_search():
    decisions.clear()
    attention(*_drawn(1, 40))
    assert decisions == {("attention_forward", None, "conservative"): 1}


def test_refusals_say_what_is_wrong():
    q, k, v = _drawn(4, 4, heads=3)
    with pytest.raises(ValueError, match="3 heads cannot share 2 of keys equally"):
        attention(q, k.expand(1, 2, 4, 16), v.expand(1, 2, 4, 16))
    with pytest.raises(ValueError, match=r"v has shape \(1, 1, 3, 16\), but \(1, 1, 4, 16\) follows"):
        attention(q, k, v[:, :, :3])
    with pytest.raises(ValueError, match="dim is 256, but at most 128 fit"):
        attention(*_drawn(1, 1, dim=256))
    with pytest.raises(ValueError, match=r"scale is -1\.0, but must be above 0"):
        attention(q, k, v, scale=-1.0)
    with pytest.raises(ValueError, match="window is 0, but a query sees at least itself"):
        attention(q, k, v, window=0)
    with pytest.raises(TypeError, match=r"k is torch.float16; supported are float32"):
        attention(q, k.half(), v)
    with pytest.raises(ValueError, match=r"q, k and v must be \(batch, heads, n, dim\)"):
        attention(q[0], k, v)


def test_table_entries_past_a_length_may_be_anything():
    inputs = PAGED.inputs({"q[0]": 3, "n_kv": 70, "dim": 16, "heads": 4, "kv_heads": 2}, "float32", DEVICE, 1)
    q, k_cache, v_cache, table, lengths = inputs.args
    assert (table == -1).any()
    wild = torch.where(table < 0, 2**31 - 1, table)
    assert torch.equal(paged_attention(q, k_cache, v_cache, wild, lengths), paged_attention(*inputs.args))


def test_pages_are_those_of_dense_attention():
    q, k, v = _drawn(1, 48, heads=4, kv_heads=2)
    pages = [t[0].transpose(0, 1).unflatten(0, (3, 16))[[2, 0, 1]].contiguous() for t in (k, v)]
    table, lengths = (torch.tensor(x, dtype=torch.int32, device=DEVICE) for x in ([[1, 2, 0]], [41]))
    out = paged_attention(q[:, :, 0], *pages, table, lengths)
    close(out, attention(q, k[:, :, :41], v[:, :, :41])[:, :, 0].double(), 1e-6)


def test_split_sequences_of_unequal_length_are_joined():
    check(PAGED, {"q[0]": 4, "n_kv": 1000, "dim": 16, "heads": 2, "kv_heads": 1}, "float32", seed=2)


def test_paged_refusals_say_what_is_wrong():
    q, k_cache, v_cache, table, lengths = PAGED.inputs(PAGED.edges[0], "float32", DEVICE, 0).args
    with pytest.raises(TypeError, match=r"lengths is torch.int64; supported are int32"):
        paged_attention(q, k_cache, v_cache, table, lengths.long())
    with pytest.raises(ValueError, match="a page holds 15 keys"):
        paged_attention(q, k_cache[:, :15], v_cache[:, :15], table, lengths)
    with pytest.raises(ValueError, match=r"block_table has shape \(2, 5\), but \(3, 5\) follows"):
        paged_attention(q, k_cache, v_cache, table[:2], lengths)
