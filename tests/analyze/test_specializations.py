"""Why a variant was new, in words; and the earlier variant that it is compared with."""

from __future__ import annotations

import pytest
from support.runs import Writer

import tprof
from tprof.variants import changes, why_new

DIVISIBLE = "i32, tt.divisibility=16"


@pytest.mark.parametrize(
    ("name", "before", "after", "scalars", "words"),
    [
        ("M", DIVISIBLE, "i32", {"M": 777}, "M: 777 is not divisible by 16"),
        ("M", DIVISIBLE, "i32", {}, "M is no longer divisible by 16"),
        ("M", "i32", DIVISIBLE, {"M": 512}, "M: 512 is divisible by 16"),
        ("x", "*bf16, tt.divisibility=16", "*bf16", {}, "the address of x is no longer divisible by 16"),
        ("batch", "i32", "constant 1", {}, "batch became 1"),
        ("batch", "constant 1", "i32", {"batch": 7}, "batch is no longer 1 but 7"),
        ("BLOCK", "constant 64", "constant 128", {}, "BLOCK: 64 -> 128"),
        ("x", "*fp16, tt.divisibility=16", "*bf16, tt.divisibility=16", {}, "x: fp16 -> bf16"),
        ("option num_warps", "4", "8", {}, "num_warps: 4 -> 8"),
        ("bias", None, "*fp32", {}, "bias is new"),
        ("x", "*fp32", "*fp32, tt.pointer_range=32", {}, "x: *fp32 -> *fp32, tt.pointer_range=32"),
    ],
)
def test_a_change_is_said_in_words(name, before, after, scalars, words):
    assert why_new([{"name": name, "before": before, "after": after}], scalars) == words


def test_a_first_variant_has_nothing_to_differ_from_and_one_again_does_not_differ():
    assert why_new(None, {}) == "first in the process"
    assert why_new([], {}) == "the same again: it was no longer in memory"


def variant(block, *hints, function="m.add", warps=4):
    arguments = [{"name": "n", "type": "i32", "hints": list(hints)}, {"name": "B", "type": "constexpr", "value": block}]
    return {"function": function, "arguments": arguments, "options": {"num_warps": warps}}


def test_of_two_variants_as_near_the_one_with_the_same_constants_counts():
    # Compared with the one right before it, B would be new; what nobody chose is n.
    rows = [variant(64, "tt.divisibility=16"), variant(128, "tt.divisibility=16"), variant(64), variant(128)]
    named = [None if found is None else [c["name"] for c in found] for found in changes(rows)]
    assert named == [None, ["B"], ["n"], ["n"]]


def test_variants_of_another_function_are_no_neighbours():
    assert changes([variant(64), variant(128, function="m.mul")]) == [None, None]


def recorded(*variants, kernel="add"):
    w = Writer()
    for i, said in enumerate(variants):
        start = 100 + 400 * i
        jit = w.begin("jit", "compile", kernel, start, caller=["/srv/app.py:7 handle", "/srv/main.py:9 main"])
        w.lines.append({"type": "specialization", "id": i + 1, "span": jit, "file": "m.py", "line": 3, **said})
        w.kernel(i + 1, kernel)
        w.end(jit, start + 100, cache_hit=False, kernel=i + 1, specialization=i + 1)
    return w


def test_cold_lists_variants_in_time_order_without_any_device(tmp_path):
    w = recorded(variant(64, "tt.divisibility=16"), variant(64))
    w.shape(1, 2, 700, n=777)
    w.span("candidate", "autotune", "add", 800, 900, text="B: 1", config={"B": 1}, done={"timings_ms": [1.0]})
    rows = tprof.load(w.write(tmp_path / "run")).cold().to_dict()["specializations"]
    assert [(r["at_ns"], r["kernel"], r["source"]) for r in rows] == [(0, "add", "m.py:3"), (400, "add", "m.py:3")]
    assert [r["why"] for r in rows] == ["first in the process", "n: 777 is not divisible by 16"]
    assert rows[0]["stack"] == ["/srv/app.py:7 handle", "/srv/main.py:9 main"]
    assert (rows[0]["wall_ns"], rows[0]["asked_by"], rows[0]["after_ready"]) == (100, "/srv/app.py:7 handle", None)


def test_a_journal_of_an_older_recorder_still_reads(tmp_path):
    w = recorded(variant(64) | {"differs": {"from": 0, "changes": []}})
    del w.lines[1]["attrs"]["caller"]
    (row,) = tprof.load(w.write(tmp_path / "run")).cold().to_dict()["specializations"]
    assert (row["asked_by"], row["stack"], row["request"]) == (None, [], None)
