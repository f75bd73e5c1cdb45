"""Mixture of experts: where rows go, ids that are no expert's, padding, and what is refused."""

from __future__ import annotations

import pytest
import torch
from support.kernel_check import DEVICE, close, read_in_place
from tprof_kernels.moe import block_rows, combine, grouped_matmul, moe_mlp, most_blocks, permute, route


def _ids(*rows):
    return torch.tensor(rows, device=DEVICE)


def test_rows_are_sorted_by_expert_then_token_and_each_expert_begins_a_block():
    routing = route(_ids([2, 0], [2, 1], [2, 2]), experts=4, block=16)
    assert routing.slot.tolist() == [[32, 0], [33, 16], [34, 35]]
    assert routing.expert.tolist() == [0, 1, 2, -1]  # expert 3 has no rows; the last block none that owns it
    assert routing.source[:2].tolist() == [0, -1]
    assert routing.source[16:18].tolist() == [1, -1]
    assert routing.source[32:37].tolist() == [0, 1, 2, 2, -1]


def test_an_id_of_no_expert_gets_no_row_and_adds_nothing():
    routing = route(_ids([-1, 0], [7, 1]), experts=2, block=16)
    assert routing.slot.tolist() == [[-1, 0], [-1, 16]]
    rows = torch.full((routing.source.numel(), 3), torch.nan, device=DEVICE)
    rows[0], rows[16] = 1.0, 2.0
    weights = torch.full((2, 2), 0.5, device=DEVICE)
    assert combine(rows, weights, routing).tolist() == [[0.5] * 3, [1.0] * 3]


@pytest.mark.parametrize("block", [16, 32, 64, 128])
@pytest.mark.parametrize("spread", ["all to one", "one to each", "even"])
def test_the_bound_on_blocks_holds_however_choices_fall(block, spread):
    choices = {"all to one": [0] * 129, "one to each": list(range(129)), "even": [i % 3 for i in range(129)]}[spread]
    routing = route(_ids(*[[c] for c in choices]), experts=200, block=block)
    assert routing.expert.numel() == most_blocks(129, 200, block)
    assert sorted(routing.source[routing.source >= 0].tolist()) == list(range(129))
    owner = routing.expert.repeat_interleave(block)
    assert owner[routing.slot[:, 0].long()].tolist() == choices


def test_a_block_is_as_high_as_an_expert_has_rows():
    assert [block_rows(n, 8) for n in (1, 128, 129, 256, 4096)] == [16, 16, 32, 32, 128]


def test_a_round_trip_gives_every_token_back():
    x = torch.randn(37, 20, device=DEVICE)
    routing = route(torch.randint(0, 5, (37, 2), device=DEVICE), experts=5)
    rows = permute(x, routing)
    assert rows[routing.source < 0].abs().max() == 0
    assert torch.equal(combine(rows, torch.full((37, 2), 0.5, device=DEVICE), routing), x)


def test_blocks_without_an_expert_are_zero_and_an_expert_without_rows_has_no_gradient():
    routing = route(_ids([1], [1]), experts=3, block=16)
    routing = routing._replace(expert=routing.expert.new_tensor([1, -1]))
    x, weights = torch.randn(32, 24, device=DEVICE), torch.randn(3, 24, 8, device=DEVICE, requires_grad=True)
    out = grouped_matmul(x, weights, routing)
    out.sum().backward()
    close(out[:16], x[:16].double() @ weights[1].double(), 5e-6)
    assert out[16:].abs().max() == 0
    assert weights.grad[[0, 2]].abs().max() == 0
    close(weights.grad[1], x[:16].double().sum(0)[:, None].expand(24, 8), 5e-6)


def test_weights_are_read_in_place_when_transposed():
    routing = route(_ids([0], [1]), experts=2, block=16)
    x, weights = torch.randn(32, 16, device=DEVICE), torch.randn(2, 8, 16, device=DEVICE)
    rows = permute(x[:2], routing)
    with read_in_place(rows, weights):
        out = grouped_matmul(rows, weights.mT, routing)
    assert torch.equal(out, grouped_matmul(rows, weights.mT.contiguous(), routing))


def test_refusals_say_what_is_wrong():
    routing = route(_ids([0], [1]), experts=2)
    with pytest.raises(TypeError, match=r"topk_ids is torch.float32; supported are int32, int64"):
        route(torch.ones(2, 2), 2)
    with pytest.raises(ValueError, match=r"topk_ids has shape \(2,\), but must be \(tokens, k\)"):
        route(torch.ones(2, dtype=torch.int32), 2)
    with pytest.raises(ValueError, match="block is 8, but must be 16, 32, 64 or 128"):
        route(_ids([0]), 2, block=8)
    with pytest.raises(ValueError, match=r"x has shape \(3, 4\), but \(2, 4\) follows"):
        permute(torch.ones(3, 4, device=DEVICE), routing)
    with pytest.raises(ValueError, match=r"x must be \(rows, k\) with 2 blocks of rows"):
        grouped_matmul(torch.ones(33, 4, device=DEVICE), torch.ones(2, 4, 4, device=DEVICE), routing)
    with pytest.raises(ValueError, match=r"weights has shape \(2, 5, 4\), but \(2, 4, 4\) follows"):
        grouped_matmul(torch.ones(32, 4, device=DEVICE), torch.ones(2, 5, 4, device=DEVICE), routing)
    with pytest.raises(ValueError, match=r"topk_weights has shape \(2, 2\), but \(2, 1\) follows"):
        combine(torch.ones(32, 4, device=DEVICE), torch.ones(2, 2, device=DEVICE), routing)
    with pytest.raises(TypeError, match=r"weights is torch.float16; supported are float32"):
        moe_mlp(
            torch.ones(2, 4, device=DEVICE),
            torch.ones(2, 4, 8, device=DEVICE).half(),
            torch.ones(2, 4, 4, device=DEVICE),
            _ids([0], [1]),
            torch.ones(2, 1, device=DEVICE),
        )
