"""What is called to learn what a kernel compiles, and inputs that cost nothing."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from tprof.accept.compiling import Compiling
from tprof.accept.cost import _Unwritten, calls
from tprof.accept.targets import find_specs


@pytest.fixture(scope="module")
def good(root):
    return find_specs(f"{root / 'tests' / 'support' / 'planted.py'}:GOOD")[0]


def test_every_shape_and_then_odd_neighbours_of_the_first(good):
    found = list(calls(good))
    assert [(kind, bucket, sizes["N"]) for kind, bucket, sizes in found[:3]] == [
        ("shape", "short", 200), ("shape", "long", 1024), ("shape", "other", 3000)]  # fmt: skip
    assert [(kind, sizes["M"], sizes["N"]) for kind, _, sizes in found[3:]] == [
        ("probe", 4, n) for n in (199, 197, 195, 193, 191, 189)]  # fmt: skip


def test_no_neighbour_is_one_or_less(good):
    small = replace(good, shapes=good.shapes | {"short": ({"M": 4, "N": 4},)})
    assert [sizes["N"] for kind, _, sizes in calls(small) if kind == "probe"] == [3]


def test_large_inputs_are_neither_drawn_nor_touched():
    with _Unwritten():
        drawn = torch.randn((1 << 40, 4), device="meta").mul_(2.0).to(torch.bfloat16)
        numbers = torch.randint(3, 4, (5,))
    assert (drawn.shape, drawn.dtype) == ((1 << 40, 4), torch.bfloat16)
    assert numbers.tolist() == [3] * 5


def test_only_a_variant_that_was_there_counts_as_missed(monkeypatch):
    def call(arguments, *, hit=False):
        use = {"function": "f", "arguments": arguments, "options": "{}", "cache_hit": hit}
        return {"kernel": "k", "kind": "shape", "bucket": "b", "variants": [use]}

    monkeypatch.setattr("tprof.accept.compiling._calls", lambda trace: trace.calls)
    first = SimpleNamespace(calls=[call("a"), call("b")])
    again = SimpleNamespace(calls=[call("a", hit=True), call("b"), call("another winner's")])
    assert Compiling(first, again).missed("k") == 1
    assert Compiling(first, again).missed("other") == 0
