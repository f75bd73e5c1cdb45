"""Buckets with a fallback: what serves which shape, what is compiled and tuned for it, and what the recording shows."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest
from support.skips import needs_triton
from support.until import until

import tprof
from tprof.buckets import BucketSet
from tprof.record import decisions

pytestmark = needs_triton

SIZES = BucketSet.of("sizes", short={"n": "1..1024"}, long={"n": "4096..8192", "x[0]": "1024"})


@pytest.fixture
def kernels(monkeypatch, tmp_path):
    pytest.importorskip("triton")
    from support import on_stub, record_kernels

    monkeypatch.setattr(decisions, "counts", Counter())
    with on_stub.cold_stub(monkeypatch, tmp_path / "cache", interpreted=True) as driver:
        record_kernels.driver = driver
        yield record_kernels


def config(block, warps=4):
    import triton

    return triton.Config({"B": block, "HOW": 0}, num_warps=warps, num_stages=3)


def call(kernel, n, size=1024):
    """Double the first n values; gives them."""
    import torch

    x, o = torch.arange(float(size)), torch.zeros(size)
    kernel[lambda meta: (-(-size // meta["B"]),)](x, o, n)
    assert o[: min(n, size)].tolist() == (2 * x[: min(n, size)]).tolist()


def in_torch(x, o, n):
    """The same, without Triton."""
    o[:n] = 2 * x[:n]


def launched(kernels):
    return [launch.name for launch in kernels.driver.launches]


def test_hot_buckets_are_pinned_and_the_rest_falls_back(kernels, tmp_path):
    doubled = tprof.bucketed(kernels.pick, buckets=SIZES, pinned={"short": config(128)}, otherwise=in_torch)
    with tprof.trace(tmp_path / "run", nvtx=False):
        call(doubled, 1000)
        call(doubled, 1000)
        call(doubled, 2000)  # in no bucket
        call(doubled, 2000)
        call(doubled, 4096)  # in a bucket without a pin
    assert decisions.counts == {
        ("pick", "short", "pinned"): 2,
        ("pick", None, "fallback"): 2,
        ("pick", "long", "fallback"): 1,
    }
    assert launched(kernels) == ["pick"] * 2
    trace = tprof.load(tmp_path / "run")
    host = trace.frame("host")
    assert [name for name in host.name.to_list() if ": " in name] == [
        "pick/short: pinned", "pick/other: fallback", "pick/other: fallback", "pick/long: fallback",
    ]  # fmt: skip
    assert len(trace.frame("compiles")) == 1
    assert len(trace.frame("candidates")) == 0


def test_a_conservative_config_serves_what_no_bucket_holds(kernels, tmp_path):
    tuner = kernels.tuned((128, 0, 4), (256, 0, 4), (512, 0, 4))
    doubled = tprof.bucketed(tuner, buckets=SIZES, otherwise=config(64), search=2)
    with tprof.trace(tmp_path / "run", nvtx=False):
        for n in (2000, 16, 512, 1000, 4096):
            call(doubled, n)
            call(doubled, n)
    assert decisions.counts == {
        ("pick", None, "conservative"): 2, ("pick", "short", "tuned"): 6, ("pick", "long", "tuned"): 2,
    }  # fmt: skip
    candidates = tprof.load(tmp_path / "run").frame("candidates")
    assert len(candidates) == 4  # two buckets, two configs each; three lengths share a search
    assert tuner.cache == {}


def test_a_pinned_config_runs_its_hook_first(kernels):
    import triton

    seen = []
    pinned = triton.Config(
        {"B": 128, "HOW": 0}, num_warps=4, num_stages=3, pre_hook=lambda named: seen.append(named["n"])
    )
    call(tprof.bucketed(kernels.pick, buckets=SIZES, pinned={"short": pinned}, otherwise=in_torch), 1000)
    assert seen == [1000]


def test_heuristics_still_count(kernels):
    import triton

    fixed = triton.heuristics({"HOW": lambda named: 0 * named["n"]})(kernels.pick)
    pinned = triton.Config({"B": 128}, num_warps=4, num_stages=3)
    call(tprof.bucketed(fixed, buckets=SIZES, pinned={"short": pinned}, otherwise=in_torch), 1000)
    assert launched(kernels) == ["pick"]


def test_the_background_compiles_and_takes_over(kernels, tmp_path):
    doubled = tprof.bucketed(kernels.pick, buckets=SIZES, otherwise=in_torch, background=config(128))
    tprof.ready()
    with tprof.guard("raise") as watch, tprof.trace(tmp_path / "run", nvtx=False):
        call(doubled, 2000)
        assert decisions.counts == {("pick", None, "fallback"): 1}  # at once
        until(lambda: call(doubled, 2000) or decisions.counts["pick", None, "switched"])
        before = len(kernels.driver.launches)
        call(doubled, 2016)  # the same specialization
        assert decisions.counts["pick", None, "switched"] == 2
        call(doubled, 2001)  # not divisible by 16
        assert decisions.counts["pick", None, "switched"] == 2
        assert len(kernels.driver.launches) == before + 1
        until(lambda: call(doubled, 2001) or decisions.counts["pick", None, "switched"] > 2)
    assert not watch.violations
    trace = tprof.load(tmp_path / "run")
    threads = trace.frame("threads").name
    assert {threads[i] for i in trace.frame("compiles").thread} == {"tprof-background"}
    assert trace.frame("host").query("kind == 'launch'").cold.sum() == 0


def test_a_background_that_fails_leaves_the_fallback(kernels, caplog):
    import triton

    failing = triton.Config({"B": 128, "HOW": 2}, num_warps=4, num_stages=3)
    doubled = tprof.bucketed(kernels.pick, buckets=SIZES, otherwise=in_torch, background=failing)
    call(doubled, 2000)
    until(lambda: caplog.records)
    call(doubled, 2000)
    assert decisions.counts == {("pick", None, "fallback"): 2}
    (record,) = caplog.records
    assert "pick could not be compiled in the background (CompileTimeAssertionFailure" in record.message


ENDING = """
import torch, triton, triton.language as tl, tprof
from tprof.buckets import BucketSet
from tprof.testing.stub import stub_driver

@triton.jit
def copy(q, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(q + i, mask=i < n), mask=i < n)

with stub_driver():
    sizes = BucketSet.of("sizes", ("copy",), small={"n": "1..10"})
    wide = triton.Config({"BLOCK": 64})
    copied = tprof.bucketed(copy, buckets=sizes, otherwise=lambda q, out, n: None, background=wide)
    for n in range(100, 130):
        copied[1,](torch.ones(n), torch.empty(n), n)
"""


def test_a_process_may_end_while_the_background_compiles(tmp_path):
    (tmp_path / "ending.py").write_text(ENDING)
    environment = os.environ | {"TRITON_CACHE_DIR": str(tmp_path / "cache"), "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [sys.executable, tmp_path / "ending.py"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_cannot_be_is_refused(kernels):
    with pytest.raises(tprof.UsageError, match="no bucket 'medium' to pin a config of pick for"):
        tprof.bucketed(kernels.pick, buckets=SIZES, otherwise=in_torch, pinned={"medium": config(64)})
    with pytest.raises(tprof.UsageError, match=r"no @triton\.autotune whose configs could be searched"):
        tprof.bucketed(kernels.pick, buckets=SIZES, otherwise=in_torch, search=2)
