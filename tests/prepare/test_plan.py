"""What of a recording is worth preparing, under which budget, and the file that says so."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest
from support.runs import cold_request
from support.skips import needs_triton

from tprof.buckets import BucketSet
from tprof.errors import SourceError, TprofError
from tprof.prepare import plan_file
from tprof.prepare.plan import Limits, make


def by_name(plan: plan_file.Plan) -> dict[str, plan_file.Kernel]:
    return {kernel.function.rsplit(".", 1)[-1]: kernel for kernel in plan.kernels}


@needs_triton
def test_what_calls_used_is_planned_and_what_was_only_timed_is_not(plan):
    found = by_name(plan)
    assert {name: len(kernel.specializations) for name, kernel in found.items()} == {"add": 2, "scale": 2, "shift": 2}
    assert {s.calls for kernel in plan.kernels for s in kernel.specializations} == {3}
    assert {s.verdict for s in found["add"].specializations} == {"warm"}
    assert {s.verdict for s in found["scale"].specializations} == {"pin"}
    assert plan.left_out.keys() == {"only-timed"}
    assert plan.left_out["only-timed"] == 5  # 3 + 2 candidates; those of equal kind are the same kernel


@needs_triton
def test_winners_with_their_keys_and_timings(plan):
    [even, odd] = sorted(by_name(plan)["scale"].searches, key=lambda s: -s.key[0])
    assert (even.key_names, even.key) == (["n"], [1024, "torch.float32", "torch.float32"])
    assert odd.key[0] == 1000
    assert odd.calls == even.calls == 3
    assert len(even.timings_ns) == 3
    assert min(even.timings_ns, key=even.timings_ns.get).startswith(f"B: {even.config['B']},")


@needs_triton
def test_arguments_are_enough_to_compile_without_tensors(plan):
    one = by_name(plan)["scale"].specializations[0]
    assert one.arguments[0] == ["x", "*fp32", ["tt.divisibility=16"]]
    assert one.arguments[3] == ["DTYPE", {"constexpr": "fp16", "class": "dtype"}]
    assert dict(map(tuple, one.options))["num_stages"] == 2
    assert one.shapes[0].startswith("x float32[")


@needs_triton
def test_budgets_keep_the_most_called_and_count_the_rest(recorded, plan):
    few = make([recorded], Limits(max_kernels=2))
    assert sum(len(k.specializations) for k in few.kernels) == 2
    assert few.left_out["over-budget"] == 4
    costs = sorted(s.cold_ns for k in plan.kernels for s in k.specializations)
    short = make([recorded], Limits(max_seconds=(costs[0] + 1000) / 1e9))
    assert [s.cold_ns for k in short.kernels for s in k.specializations] == costs[:1]
    assert make([recorded], Limits(max_seconds=0)).kernels == []


@needs_triton
def test_two_runs_add_up(recorded, plan):
    both = make([recorded, recorded], Limits())
    assert Counter(s.calls for k in both.kernels for s in k.specializations) == {6: 6}
    assert by_name(both)["scale"].source == by_name(plan)["scale"].source


@needs_triton
def test_calls_are_requests_or_declared_buckets(recorded, plan):
    assert [(c.name, c.values, c.calls) for c in plan.calls] == [("n=1000", {}, 3), ("n=1024", {}, 3)]
    sets = (BucketSet.of("size", ("scale",), small={"n": "..1000"}, even={"n": "1024"}, never={"n": "5000.."}),)
    calls = make([recorded], Limits(buckets=sets)).calls
    assert [(c.name, c.values["n"], c.calls) for c in calls] == [("size.even", 1024, 3), ("size.small", 1000, 3)]


@needs_triton
def test_the_file_is_the_plan_in_an_order_that_does_not_change(plan, tmp_path):
    file = tmp_path / "plan.json"
    file.write_text(plan.text())
    assert plan_file.load(file) == plan
    assert plan_file.load(file).text() == plan.text()
    lines = plan.text().splitlines()
    assert max(map(len, lines)) < 200
    assert list(json.loads(plan.text())) == sorted(json.loads(plan.text()))
    fewer = replace(plan, kernels=plan.kernels[1:])
    gone = set(lines) - set(fewer.text().splitlines())
    assert any(plan.kernels[0].source in line for line in gone)


def test_a_recording_without_signatures_leaves_its_kernels_out(tmp_path):
    run = cold_request().write(tmp_path / "old")
    assert make([run], Limits()).kernels == []


def test_no_recording(tmp_path):
    with pytest.raises(SourceError, match="no recording of tprof"):
        make([tmp_path], Limits())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not complete JSON"),
        ('{"format": "tprof-plan", "kernels": [', "not complete JSON"),
        ("[]", "no plan of tprof"),
        ('{"traceEvents": []}', "no plan of tprof"),
        ('{"format": "tprof-plan", "format_version": 2}', "plan format 2"),
        ('{"format": "tprof-plan", "format_version": 1}', "is damaged"),
        ('{"format": "tprof-plan", "format_version": 1, "kernels": [{}]}', "is damaged"),
        ('{"format": "tprof-plan", "format_version": 1, "kernels": 3}', "is damaged"),
    ],
)
def test_a_file_that_is_no_plan(tmp_path, text, problem):
    file = tmp_path / "plan.json"
    file.write_text(text)
    with pytest.raises(TprofError, match=problem):
        plan_file.load(file)
    with pytest.raises(TprofError, match="cannot be read"):
        plan_file.load(tmp_path / "absent.json")
