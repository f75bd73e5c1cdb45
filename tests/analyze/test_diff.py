"""A diff with itself is empty, mirrors, is quiet within the noise of repeats, and names what was planted."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from support.skips import needs_triton
from support.small import call, kernel, span, trace

import tprof
from tprof.align import AlignOptions, align
from tprof.analyze import Attribution, Options
from tprof.analyze.diff import diff, regressions
from tprof.model import table

MIRROR = {
    "new": "gone", "more": "less", "fell back": "compiled now", "fusion lost": "fused", "moved": "moved",
    "other config": "other config", "other kernels": "other kernels", "more specializations": "fewer specializations",
    "compiled again": "compiled less", "cold in a request": "warm in requests", "more warm-up": "less warm-up",
}  # fmt: skip
MIRROR |= {after: before for before, after in MIRROR.items()}


def program(
    seed: int = 0, *, kernels=("triton_red_norm_0",), config="B=64", variants=1, warm=True, slow=1.0, jitter=0.05
) -> Attribution:
    """Ten requests that each run a norm and a matmul; `rms` is compiled before them, or in the first."""
    noise = random.Random(seed)
    host, device, at, number = [], [], 0, 0

    def took(ns: float) -> int:
        return round(ns * (1 + noise.uniform(-jitter, jitter)))

    begin = at
    at += took(5_000_000)
    cold = span(begin, at, "c: compile rms_norm")
    host.append(cold)
    if warm:
        number += 1
        host += [span(at, at + 300, "warm up"), call(at + 100, at + 200, correlation=number)]
        device.append(kernel(at + 400, at + 500, "rms", correlation=number))
        at += 10_000
    for request in range(10):
        length = took(200_000 * slow)
        host += [span(at, at + length, f"request#{request}")]
        begun = at + 10
        for op, names in (("norm", kernels), ("aten::mm", ("nvjet_tst",))):
            host.append(span(begun, begun + 10_000, op, kind="op", shape_key="f32[8,8]"))
            for name in names:
                number += 1
                host.append(call(begun + 100, begun + 200, correlation=number))
                device.append(
                    kernel(begun + 300, begun + 300 + took(20_000 * slow), name, correlation=number, grid=[8, 1, 1])
                )
                begun += 400
            begun += 70_000
        at += length + 10_000
    found = align(trace(host, device), AlignOptions({"c: *": "compile", "warm up": "warmup"}))
    on = {"thread": 0, "start_ns": begin, "end_ns": cold["end_ns"], "basis": "recorded"}
    tried = {**on, "kernel": "rms", "config": config, "winner": True}
    told = {"pid": 1, "process": 0, "function": "m.rms", "file": "m.py", "line": 1}
    specializations = {key: [value] * variants for key, value in told.items()}
    spans = table("spans", {**{k: [v] for k, v in on.items()}, "phase": ["compile"], "kernel": ["rms"]}, 1)
    if not warm:  # the same compile happens while the first request is served
        first = next(row for row in found.host.to_pylist() if row["name"] == "request#0")
        spans = table("spans", {"start_ns": [first["start_ns"]], "end_ns": [first["end_ns"]], "thread": [0],
                                "phase": ["compile"], "basis": ["recorded"], "kernel": ["rms"]}, 1)  # fmt: skip
    tables = {"candidates": table("candidates", {k: [v] for k, v in tried.items()}, 1), "spans": spans,
              "specializations": table("specializations", specializations, variants)}  # fmt: skip
    return Attribution(replace(found, **tables))


def repeats(*seeds: int, **planted) -> list[Attribution]:
    return [program(seed, **planted) for seed in seeds]


def test_with_itself_nothing_differs():
    for side in (repeats(1), repeats(1, 2, 3)):
        assert not any(diff(side, side, Options()).tables.values())


def test_real_recordings_do_not_differ_from_themselves(sample_traces):
    for path in sorted(sample_traces.glob("*.gz")):
        of = tprof.load(path).attribution
        assert not any(diff([of], [of], Options()).tables.values())


@pytest.mark.parametrize("seed", range(0, 120, 6))
def test_repeats_of_one_program_differ_by_nothing(seed):
    found = diff(repeats(seed, seed + 1, seed + 2), repeats(seed + 3, seed + 4, seed + 5), Options())
    assert not any(found.tables.values())
    assert "noise-unknown" not in {n.code for n in found.notes}


def test_one_recording_a_side_cannot_judge_noise():
    found = diff(repeats(1), repeats(2), Options())
    assert "noise-unknown" in {n.code for n in found.notes}
    assert {row["band_ns"] for row in found.tables["figures"]} == {None}


@pytest.mark.parametrize("sides", [((1,), (2,)), ((1, 2), (3, 4))])
def test_a_diff_mirrors(sides):
    was = repeats(*sides[0])
    now = repeats(*sides[1], kernels=("add", "mul"), config="B=128", variants=2, warm=False, slow=2.0)
    there, back = diff(was, now, Options()).tables, diff(now, was, Options()).tables
    assert there["changes"]
    for name, rows in there.items():
        keys = [k for k in ("change", "verdict") if rows and k in rows[0]]
        same = ("figure", "part", "kernel", "shape", "name", "occurrence", "phase", "band_ns")
        mirrored = [
            {k: row.get(k) for k in same} | {k: MIRROR[row[k]] for k in keys}
            | ({"change_ns": -row["change_ns"]} if "change_ns" in row
               else {"before": row["after"], "after": row["before"]})
            for row in rows
        ]  # fmt: skip
        found = [{k: row.get(k) for k in mirrored[0]} for row in back[name]] if rows else back[name]
        assert sorted(map(str, mirrored)) == sorted(map(str, found)), name


PLANTED = {
    "fell back": ({"kernels": ("triton_red_norm_0",)}, {"kernels": ("void at::native::norm_kernel<float>(float)",)}),
    "fusion lost": ({"kernels": ("triton_red_norm_0",)}, {"kernels": ("triton_red_norm_3", "triton_poi_mul_4")}),
    "other config": ({"config": "B=64"}, {"config": "B=128"}),
    "more specializations": ({"variants": 1}, {"variants": 2}),
    "less warm-up": ({"warm": True}, {"warm": False}),
    "cold in a request": ({"warm": True}, {"warm": False}),
}


@pytest.mark.parametrize("change", PLANTED)
def test_what_was_planted_is_named(change):
    was, now = PLANTED[change]
    found = diff(repeats(1, 2, 3, **was), repeats(4, 5, 6, **now), Options()).tables["changes"]
    named = {row["change"] for row in found}
    assert change in named
    assert named <= {change, "cold in a request", "less warm-up"} if "warm" in was else named == {change}


def test_a_lost_fusion_says_which_kernels():
    was, now = PLANTED["fusion lost"]
    op, whole = diff(repeats(1, **was), repeats(2, **now), Options()).tables["changes"]
    assert (op["name"], op["before"], op["after"]) == (
        "norm f32[8,8]",
        "1 kernel",
        "2 kernels: inductor triton_poi_mul",
    )
    assert whole["name"] == "request#0, request#1, request#2 and 7 more"


def test_a_slower_program_is_found_with_its_kernels():
    found = diff(repeats(1, 2, 3), repeats(4, 5, 6, slow=2.0), Options()).tables
    assert not found["changes"]
    assert {"device work", "request p50"} <= {r["figure"] for r in found["figures"] if r["verdict"] == "more"}
    assert {(r["kernel"], r["shape"], r["verdict"]) for r in found["kernels"]} >= {("nvjet_tst", "f32[8,8]", "more")}


def test_kernels_are_those_of_the_devices_asked_for():
    sides = repeats(1, 2), repeats(3, 4, slow=1.5)
    assert diff(*sides, Options(devices=("0",))).tables["kernels"]
    assert not diff(*sides, Options(devices=("1",))).tables["kernels"]


def test_new_and_gone_kernels():
    rows = diff(repeats(1), repeats(1, kernels=("other",)), Options()).tables["kernels"]
    verdicts = {r["kernel"]: r["verdict"] for r in rows}
    assert verdicts["other"] == "new"
    assert verdicts["triton_red_norm"] == "gone"  # without the number that Inductor gave it


def test_regressions_ignore_what_is_within_the_band():
    base = repeats(1, 2, 3)
    states = [{r["gate"]: r["state"] for r in regressions(base, side, Options(), 0.05)}
              for side in (repeats(4, 5, 6), repeats(4, 5, 6, slow=1.5))]  # fmt: skip
    assert set(states[0].values()) == {"passed"}
    assert states[1]["max-regression device work"] == states[1]["max-regression request p50"] == "tripped"


def recorded(folder, monkeypatch, *, configs=((128, 0, 4), (256, 0, 2)), sizes=(1000,), warm=True):
    """A run of the stub driver: a kernel that is launched before (or first in) a request, which then tunes another."""
    from support import record_kernels as kernels

    torch = pytest.importorskip("torch")
    from tprof.record import request, trace
    from tprof.testing.stub import stub_driver

    monkeypatch.setenv("TRITON_CACHE_DIR", str(folder) + "-cache")
    monkeypatch.setenv("TRITON_DEFAULT_FP_FUSION", "1")
    x, o = torch.ones(1024), torch.empty(1024)
    with stub_driver():
        for function in (kernels.add, kernels.pick):
            kernels.forget(function)
        tuner = kernels.tuned(*configs)
        with trace(folder, nvtx=False):
            if warm:
                kernels.add[(8,)](x, x, o, sizes[0], B=128)
            with request("generate"):
                for n in sizes:
                    kernels.add[(8,)](x, x, o, n, B=128)
                tuner[lambda meta: (1024 // meta["B"],)](x, o, 1024)
    return [tprof.load(folder).attribution]


RECORDED = {
    "": {},
    "other config": {"configs": ((256, 0, 2), (128, 0, 4))},  # the bench prefers the later one
    "more specializations": {"sizes": (1000, 1024)},
    "cold in a request": {"warm": False},
}


@needs_triton
@pytest.mark.parametrize("change", RECORDED)
def test_recorded_runs(change, tmp_path, monkeypatch):
    before = recorded(tmp_path / "a", monkeypatch)
    after = recorded(tmp_path / "b", monkeypatch, **RECORDED[change])
    rows = diff(before, after, Options()).tables["changes"]
    named = {row["change"] for row in rows}
    assert (change in named) if change else not named
    # a second variant is compiled, and its first use is in the request
    assert named <= {change, *({"compiled again", "cold in a request"} if change == "more specializations" else ())}
    assert {row["basis"] for row in rows} <= {"recorded"}


def test_what_one_side_cannot_know_is_not_gone():
    blind = [Attribution(replace(of.trace, device=of.trace.device.slice(0, 0))) for of in repeats(2)]
    found = diff(repeats(1), blind, Options())
    assert found.tables["kernels"] == found.tables["phases"] == []
    assert "device work" not in {row["figure"] for row in found.tables["figures"]}
    assert [n.count for n in found.notes if n.code == "not-compared"] == [1, 1]
