"""Each planted bug fails in the part that is there for it, and nothing else does; without a bug nothing fails."""

from __future__ import annotations

import pytest

from tprof.accept.report import FAILED, NOT_RUN, PASSED
from tprof.accept.run import judge

BUGS = {
    "good": set(),
    "mean": set(),
    "mask off by one": {"correctness", "stability"},  # a column that is never written is wrong under stress too
    "no maximum": {"stability"},
    "narrow sum": {"stability"},
    "stale fallback": {"fallback"},
    "one variant a shape": {"compile cost"},
}


@pytest.fixture(scope="module")
def judged(root):
    steps = []
    result = judge(str(root / "tests" / "support" / "planted.py"), cpu=True, progress=lambda: steps.append(1))
    assert len(steps) == 4
    return {kernel["kernel"]: kernel for kernel in result.to_dict()["kernels"]}


@pytest.mark.parametrize("kernel", BUGS)
def test_a_bug_fails_in_its_part(judged, kernel):
    states = {part["part"]: part["state"] for part in judged[kernel]["parts"]}
    assert len(states) == 7
    assert {part for part, state in states.items() if state == FAILED} == BUGS[kernel]
    assert {part for part, state in states.items() if state == NOT_RUN} == {"performance", "end to end"}
    assert states["maintenance"] == PASSED


@pytest.mark.parametrize("kernel", BUGS)
def test_the_verdict_follows_and_says_why(judged, kernel):
    verdict, reason = judged[kernel]["verdict"], judged[kernel]["reason"]
    assert verdict == ("do not" if BUGS[kernel] else "cannot say")
    assert all(part in reason for part in BUGS[kernel])


def test_compiling_is_real(judged):
    rows = judged["good"]["cost"]
    assert [(row["bucket"], row["variants"], row["served"]) for row in rows] == [
        ("short", 1, "triton"), ("long", 1, "triton"), ("other", 1, "triton")]  # fmt: skip
    assert all(row["cold_ns"] > row["disk_ns"] > 0 for row in rows)
    (function,) = judged["good"]["variants"]
    assert function["variants"] == 3
    assert min(function[f"{stage}_ns"] for stage in ("ttir", "ttgir", "llir", "ptx", "cubin")) > 0
    assert function["registers"] > 0


def test_every_failure_is_kept(judged):
    failures = judged["mask off by one"]["failures"]
    assert len(failures) == 20 + 21
    assert {"M=3 N=1, float16, strided", "M=3 N=500, float16, a row of -inf"} <= {row["case"] for row in failures}


def test_maintenance_counts(judged):
    (row,) = judged["good"]["maintenance"]
    assert (row["functions"], row["branches"], row["candidates"], row["buckets"]) == (1, 1, 0, 2)
