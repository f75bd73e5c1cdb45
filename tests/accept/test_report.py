"""Verdicts from measured speed: faster everywhere, in some buckets, nowhere; never from one shape."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from tprof.accept.report import Found, report
from tprof.accept.speeds import ahead, bucket_speeds
from tprof.present import markdown, text


def shape(bucket, ours, spread=1.0, **others):
    times = {"ours": ours, "eager": 100.0, **others}
    results = {
        name: {"median_us": t, "p10_us": t - spread, "p90_us": t + spread, "host_us": 9.0} for name, t in times.items()
    }
    return {"kernel": "k", "bucket": bucket, "case": f"{bucket} {ours}", "results": results, "errors": {"ours": None},
            "least_us": 40.0, "request_function_us": 500.0, "request_fallback_us": 600.0}  # fmt: skip


def compiling(**buckets):
    return SimpleNamespace(
        buckets=lambda _: [
            {"kernel": "k", "bucket": name, "served": "triton", "variants": 1, "candidates": 0, "cold_ns": cold,
             "disk_ns": 1}
            for name, cold in buckets.items()
        ],
        variants=lambda _: [], missed=lambda _: 0, by_probe=lambda _: [1, 0, 0],
    )  # fmt: skip


NUMBERS = {
    "kernels": ["k"],
    "device": "Test GPU",
    "torch": "2",
    "triton": "3",
    "rows": [
        {"kernel": "k", "part": part, "case": "c", "error": None} for part in ("correctness", "stability", "fallback")
    ],
    "maintenance": [
        {"kernel": "k", "functions": 1, "lines": 9, "branches": 0, "candidates": 2, "buckets": 2, "edges": 3,
         "dtypes": 1}
    ],
}  # fmt: skip
FOUND = Found(NUMBERS, {"rows": []}, compiling(short=2_000_000, long=3_000_000, other=1), 10, {"rows": []})


def judged(*shapes, **change):
    result = report("here", replace(FOUND, speed={"rows": list(shapes)}, **change))
    (kernel,) = result.to_dict()["kernels"]
    return kernel, {part["part"]: part["state"] for part in kernel["parts"]}


def test_faster_everywhere():
    kernel, parts = judged(shape("short", 50.0), shape("long", 80.0, library=90.0))
    assert (kernel["verdict"], set(parts.values())) == ("use it", {"passed"})
    assert [row["of_ceiling_share"] for row in kernel["performance"]] == [0.8, 0.5]


def test_faster_in_one_bucket():
    kernel, _ = judged(shape("short", 50.0), shape("long", 80.0, library=60.0))
    assert kernel["verdict"] == "use it for short only"
    assert "long: library" in kernel["reason"]


@pytest.mark.parametrize("other", ["library", "compile"])
def test_a_library_or_compiler_is_simply_faster(other):
    kernel, parts = judged(shape("short", 50.0, **{other: 20.0}), shape("long", 80.0, **{other: 60.0}))
    assert kernel["verdict"] == "do not"
    assert f"short: {other}" in kernel["reason"]
    assert (parts["performance"], parts["end to end"]) == ("failed", "failed")


def test_what_lies_within_the_spread_is_not_faster():
    assert not ahead(bucket_speeds("k", {"rows": [shape("short", 95.0, spread=6.0)]}))
    assert ahead(bucket_speeds("k", {"rows": [shape("short", 95.0, spread=4.0)]})) == {"short"}


def test_a_bucket_is_won_only_in_all_of_its_shapes():
    assert ahead(bucket_speeds("k", {"rows": [shape("short", 50.0), shape("short", 99.9)]})) == set()


def test_never_from_one_shape():
    kernel, parts = judged(shape("short", 50.0))
    assert (kernel["verdict"], parts["performance"]) == ("cannot say", "not run")


def test_calls_that_pay_for_the_cold_start():
    kernel, _ = judged(shape("short", 50.0), shape("long", 100.0, library=60.0), shape("other", 10.0))
    pays = {row["bucket"]: (row["gain_ns"], row["pays_after"]) for row in kernel["requests"]}
    assert pays == {"short": (50_000, 40), "long": (-40_000, None), "other": (90_000, 1)}
    assert kernel["requests"][0]["warm_ns"] == 500_000


def test_what_failed_outweighs_speed():
    wrong = NUMBERS | {"rows": [NUMBERS["rows"][0] | {"error": "off by one"}, *NUMBERS["rows"][1:]]}
    kernel, parts = judged(shape("short", 50.0), shape("long", 80.0), numbers=wrong)
    assert (kernel["verdict"], parts["correctness"], parts["performance"]) == ("do not", "failed", "passed")


def test_a_second_process_must_find_the_variants_on_disk():
    again = compiling(short=1, long=1)
    again.missed = lambda _: 3
    kernel, parts = judged(shape("short", 50.0), shape("long", 80.0), compiling=again)
    assert (kernel["verdict"], parts["compile cost"]) == ("do not", "failed")
    assert "3 variants were compiled again" in kernel["reason"]


def test_a_page_and_a_markdown_report():
    wrong = NUMBERS | {"rows": [NUMBERS["rows"][0] | {"error": "off by one"}, *NUMBERS["rows"][1:]]}
    speed = {"rows": [shape("short", 50.0), shape("long", 80.0, library=60.0)]}
    result = report("here", replace(FOUND, speed=speed, numbers=wrong))
    page = text.plain(result, width=100)
    assert max(map(len, page.splitlines())) <= 100
    assert page.index("May it go online?") < page.index("The seven parts") < page.index("What failed")
    assert "80.0 us" in page
    lines = markdown.render(result).splitlines()
    assert "| correctness | failed | 1 of 1 cases; c: off by one |" in lines
    assert any(line.startswith("| short | short 50.0 | 50.0 us |") for line in lines)
