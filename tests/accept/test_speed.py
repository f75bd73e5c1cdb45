"""What the GPU part does, with its clock replaced: contenders, one that fails, a request of a small model."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from tprof_kernels.draw import Draw

from tprof.accept import speed as module
from tprof.accept.speeds import bucket_speeds
from tprof.buckets import BucketSet
from tprof.kernelspec import Cost, Inputs, KernelSpec

SPEC = KernelSpec(
    name="double",
    function=lambda x: x + x,
    reference=lambda x: 2 * x,
    fallback=lambda x: x * 2,
    library=lambda x: x.add(x),
    inputs=lambda sizes, dtype, device, seed: Inputs((Draw(dtype, device, seed).normal(sizes["N"]),)),
    buckets=BucketSet.of("size", small={"N": "1..100"}),
    shapes={"small": ({"N": 7}, {"N": 9}), "other": ({"N": 101},)},
    edges=(),
    dtypes=("float32",),
    tolerance={"float32": 0.0},
    cost=lambda sizes, _: Cost(4 * sizes["N"], 4 * sizes["N"], sizes["N"]),
)
CEILINGS = SimpleNamespace(of=lambda cost: {"least_us": cost.bytes_read / 4})


@pytest.fixture(autouse=True)
def clock(monkeypatch):
    """A call takes 10 us, ours and all others."""
    monkeypatch.setattr(module, "TIMES", 3)
    monkeypatch.setattr(module, "WIDTH", 8)

    def measure(call):
        assert isinstance(call(), torch.Tensor)
        return {"median_us": 10.0, "p10_us": 9.0, "p90_us": 11.0, "host_us": 3.0, "calls": 20}

    monkeypatch.setattr(module, "measure", measure)
    monkeypatch.setattr(module, "contenders", lambda s: {"ours": s.function, "eager": s.fallback, "library": s.library})


def test_every_shape_and_contender_is_measured():
    rows = module.speed(SPEC, CEILINGS, "cpu")
    assert [(row["bucket"], row["case"]) for row in rows] == [
        ("small", "N=7, float32"), ("small", "N=9, float32"), ("other", "N=101, float32"),
        ("small", "N=6, float32")]  # fmt: skip
    assert all(set(row["results"]) == {"ours", "eager", "library"} for row in rows)
    assert all(min(row["request_function_us"], row["request_fallback_us"]) > 0 for row in rows)
    first = bucket_speeds("double", {"rows": rows})[0]
    assert (first["ours_ns"], first["library_ns"], first["of_ceiling_share"], first["faster"]) == (
        10_000,
        10_000,
        0.7,
        False,
    )


def test_a_contender_that_fails_is_left_out_and_ours_is_told():
    def broken(x):
        raise RuntimeError("out of resources\nmore")

    (row, *_) = module.speed(replace(SPEC, function=broken), CEILINGS, "cpu")
    assert set(row["results"]) == {"eager", "library"}
    assert row["errors"]["ours"] == "RuntimeError: out of resources"
    (found, *_) = bucket_speeds("double", {"rows": [row]})
    assert (found["ours_ns"], found["faster"], found["error"]) == (None, False, "RuntimeError: out of resources")


def test_a_shape_that_is_refused_is_told_and_an_odd_one_is_left_out():
    def inputs(sizes, dtype, device, seed):
        if sizes["N"] in {6, 9}:
            raise ValueError("N must be odd, and not 9")
        return SPEC.inputs(sizes, dtype, device, seed)

    rows = module.speed(replace(SPEC, inputs=inputs), CEILINGS, "cpu")
    assert [row["case"] for row in rows if "ours" in row["results"]] == ["N=7, float32", "N=101, float32"]
    assert [row["errors"] for row in rows if not row["results"]] == [{"ours": "ValueError: N must be odd, and not 9"}]
