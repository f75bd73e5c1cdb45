"""What a recorder knew of a new variant reaches the reader by argument, in words."""

from __future__ import annotations

import json

from support.runs import Writer

import tprof
from tprof.analyze.specializations import why_new


def test_the_argument_that_made_a_variant_new_is_named():
    changes = [{"name": "M", "before": "i32, tt.divisibility=16", "after": "i32"}]
    assert why_new(json.dumps(changes)) == "M: i32, divisible by 16 -> i32"


def test_a_first_variant_has_nothing_to_differ_from():
    assert why_new(None) == "asked for the first time in this process, or again"


def test_cold_lists_variants_in_time_order_without_any_device(tmp_path):
    w = Writer()
    for i, (start, changes) in enumerate(((100, None), (500, [{"name": "n", "before": "i32", "after": "constant 1"}]))):
        jit = w.begin("jit", "compile", "add", start)
        w.lines.append({
            "type": "specialization", "id": i + 1, "span": jit, "function": "m.add", "file": "m.py", "line": 3,
            "arguments": [], "options": {}, **({"differs": {"from": i, "changes": changes}} if changes else {}),
        })  # fmt: skip
        w.kernel(i + 1, "add")
        w.end(jit, start + 100, cache_hit=False, kernel=i + 1)
    w.span("candidate", "autotune", "add", 700, 800, text="B: 1", config={"B": 1}, done={"timings_ms": [1.0]})
    rows = tprof.load(w.write(tmp_path / "run")).cold().to_dict()["specializations"]
    assert [(r["at_ns"], r["kernel"], r["source"]) for r in rows] == [(0, "add", "m.py:3"), (400, "add", "m.py:3")]
    assert rows[1]["why"] == "n: i32 -> constant 1"
