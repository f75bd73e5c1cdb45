"""Shapes: who pays for what was cold, first against warm calls, buckets, concentration, verdicts, the life of a key."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.incident import CANDIDATES, COLD_NS, COMPILE, LONG, MS, SHORT, TRAFFIC, TUNE, incident
from support.runs import Writer, cold_request
from support.small import call, kernel, span, trace
from support.synthetic import Recording, do_bench, triton

import tprof
from tprof.align import align
from tprof.analyze import Attribution, Options, cold, shapes
from tprof.analyze.shape_text import bucket_of, labels, split_grid, values
from tprof.analyze.verdicts import COSTLY_NS, concentration, is_hot, verdict
from tprof.buckets import BucketSet
from tprof.model import table

if TYPE_CHECKING:
    from pathlib import Path

    from tprof.model import Trace

Row = dict[str, Any]
CONTEXT = BucketSet.of("context", ("attention",), short={"M": "1..4096"}, long={"M": "16384.."})


def asked(found: Trace, **options: Any) -> Row:
    return shapes(Attribution(found), Options(**options)).to_dict()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return tprof.load(incident(tmp_path_factory.mktemp("incident") / "run"))


# ---- a recording of tprof


def test_each_shape_has_its_first_and_its_warm_calls(served: Trace) -> None:
    rows = {row["label"]: row for row in asked(served)["shapes"]}
    assert set(rows) == {f"M={length}" for length in (*SHORT, *LONG)}
    row = rows["M=32768"]
    assert (row["calls"], row["misses"], row["request_misses"], row["warm_calls"]) == (2, 1, 1, 1)
    assert row["cold_ns"] == COLD_NS
    assert (row["compile_ns"], row["autotune_ns"]) == (CANDIDATES * COMPILE, TUNE)
    assert (row["compiles"], row["disk_hits"], row["candidates"], row["tuning_calls"]) == (6, 0, 6, 6)
    assert row["first_call_ns"] == COLD_NS + MS + 20_000
    assert (row["warm_p50_ns"], row["warm_p99_ns"]) == (20_000, 20_000)
    assert (row["device_p50_ns"], row["device_total_ns"], row["tuning_device_ns"]) == (None, None, None)
    assert (row["grid"], row["key"], row["basis"]) == ("256x32", "arguments", "recorded")
    assert sum(r["calls"] for r in rows.values()) == len(TRAFFIC)


def test_long_contexts_are_found_by_bucket(served: Trace) -> None:
    long, short = asked(served, buckets=(CONTEXT,))["buckets"]
    assert (long["bucket"], long["keys"], long["misses"], long["cold_ns"]) == ("context.long", 3, 3, 3 * COLD_NS)
    assert (short["bucket"], short["keys"], short["misses"]) == ("context.short", 2, 2)
    assert asked(served)["buckets"] == []


def test_the_life_of_a_key_is_its_cold_steps_and_its_calls(served: Trace) -> None:
    steps = [s for s in asked(served)["timeline"] if s["label"] == "M=24576"]
    assert [s["step"] for s in steps] == ["compile", "module_load", "autotune", "cold call", "call"]
    assert [s["stretches"] for s in steps] == [CANDIDATES, CANDIDATES, CANDIDATES, 1, 1]
    assert [s["at_ns"] for s in steps] == sorted(s["at_ns"] for s in steps)
    assert steps[0]["wall_ns"] == CANDIDATES * COMPILE
    assert {s["request"] for s in steps} == {"generate"}


def test_a_long_life_is_cut_and_says_so(served: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tprof.analyze.shape_life.STEPS", 5)
    steps = [s for s in asked(served)["timeline"] if s["label"] == "M=512"]
    assert (len(steps), steps[-1]["step"]) == (6, "more")
    calls = next(r["calls"] for r in asked(served)["shapes"] if r["label"] == "M=512")
    assert steps[-1]["stretches"] == calls + 3 - 5


def test_a_cold_call_is_charged_with_what_came_before_it(tmp_path: Path) -> None:
    (row,) = asked(tprof.load(cold_request().write(tmp_path / "run")))["shapes"]
    assert (row["calls"], row["misses"], row["warm_calls"]) == (2, 1, 1)
    assert (row["compile_ns"], row["cache_ns"], row["module_load_ns"]) == (5_800, 200, 900)
    assert row["first_call_ns"] == 9_200 - 2_000
    assert row["shape"] == "x float32[1024] n=1024"


def test_a_search_without_work_is_charged_to_its_repetitions(tmp_path: Path) -> None:
    w = Writer()
    w.kernel(1, "mm")
    w.shape(1, 1, 5, M=1)
    one = w.begin("candidate", "autotune", "mm", 100, text="B: 1", config={"B": 1})
    w.launch(200, 210, 1, span=one)
    w.end(one, 300)
    found = asked(tprof.load(w.write(tmp_path / "run")))
    assert [(u["kernel"], u["total_ns"]) for u in found["uncharged"]] == [("mm", 200)]  # nothing came after it
    w.launch(400, 410, 1)
    (row,) = asked(tprof.load(w.write(tmp_path / "again")))["shapes"]
    assert (row["calls"], row["misses"], row["autotune_ns"], row["tuning_calls"]) == (1, 1, 200, 1)


def test_a_window_counts_what_begins_in_it(served: Trace) -> None:
    whole = asked(served)["shapes"]
    low, high = Attribution(served).extent
    middle = (low + high) // 2
    parts = [asked(served, window=w)["shapes"] for w in ((low, middle), (middle, high))]
    for name in ("calls", "cold_ns"):
        assert sum(r[name] for part in parts for r in part) == sum(r[name] for r in whole)


def test_only_kernels_that_are_asked_for(served: Trace) -> None:
    assert asked(served, kernels=("att*",))["shapes"]
    assert asked(served, kernels=("other",))["shapes"] == []
    assert [Options(kernels=globs).about(None) for globs in ((), ("N*",))] == [True, False]


# ---- other recordings


def torch_trace(shape: str | None = "float[4]:[1]", calls: int = 2) -> Trace:
    host = [span(i * 100, i * 100 + 50, "op", "op", shape_key=shape) for i in range(calls)]
    host += [call(i * 100 + 10, i * 100 + 15, correlation=i + 1) for i in range(calls)]
    device = [
        kernel(i * 100 + 20, i * 100 + 30 + i, correlation=i + 1, grid=[4, 1, 1], block=[128, 1, 1])
        for i in range(calls)
    ]
    return align(trace(host, device))


def test_an_operators_inputs_are_the_shape_of_its_kernel() -> None:
    (row,) = asked(torch_trace())["shapes"]
    assert (row["shape"], row["key"], row["calls"], row["grid"]) == ("float[4]:[1]", "operator", 2, "4x1x1")
    assert (row["first_device_ns"], row["device_p50_ns"], row["device_total_ns"]) == (10, 11, 21)
    assert (row["first_call_ns"], row["warm_p50_ns"], row["basis"]) == (5, 5, "inferred")


def test_without_shapes_grid_and_block_are_a_poor_key_and_a_warning_says_so() -> None:
    found = shapes(Attribution(torch_trace(None)), Options())
    (row,) = found.payload["shapes"]
    assert (row["shape"], row["key"]) == ("grid 4x1x1 block 128x1x1", "grid")
    assert [(n.code, n.count) for n in found.notes if n.code == "poor-shape-keys"] == [("poor-shape-keys", 1)]
    assert "poor-shape-keys" not in [n.code for n in shapes(Attribution(torch_trace()), Options()).notes]


def test_a_profilers_search_is_charged_to_the_call_that_asked_for_it() -> None:
    r = Recording("nsight")
    do_bench(r, [triton(grid=64)], 40)
    do_bench(r, [triton(grid=128)], 40)
    r.launch(triton(grid=64))
    r.sync()
    (row,) = asked(align(r.trace()))["shapes"]  # the other grid was only tried
    assert (row["shape"], row["calls"], row["candidates"]) == ("grid 64x1x1 block 128x1x1", 1, 2)
    assert row["autotune_ns"] > 0


def test_kernels_that_nobody_compiles_have_no_shapes() -> None:
    assert (
        asked(align(trace([call(0, 5, correlation=1)], [kernel(9, 12, "nvjet_sm90", correlation=1)])))["shapes"] == []
    )


# ---- conservation


@st.composite
def recordings(draw: st.DrawFn) -> Writer:
    """Cold spans and launches of two kernels on two threads, in any order."""
    w = Writer()
    for k in (1, 2):
        w.kernel(k, f"k{k}")
        w.shape(2 * k, k, 1, M=1)
        w.shape(2 * k + 1, k, 1, M=2)
    now = [10, 10]
    for _ in range(draw(st.integers(1, 14))):
        thread, length = draw(st.integers(0, 1)), draw(st.integers(1, 9))
        k, start = draw(st.integers(1, 2)), now[thread] + draw(st.integers(0, 3))
        now[thread] = start + length
        what = draw(st.sampled_from(("jit", "load", "candidate", "launch", "launch")))
        phase = {"jit": "compile", "load": "module_load", "candidate": "autotune"}.get(what)
        if phase:
            w.span(what, phase, f"k{k}", start, start + length, tid=thread + 1, done={"cache_hit": draw(st.booleans())})
        else:
            w.launch(start, start + length, 2 * k + draw(st.integers(0, 1)), tid=thread + 1)
    return w


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(recordings())
def test_charged_and_uncharged_cold_time_is_all_cold_time(tmp_path: Path, w: Writer) -> None:
    found = tprof.load(w.write(tmp_path / "run"))
    asked_, spans = asked(found), cold(Attribution(found), Options()).to_dict()["spans"]
    charged = sum(r["cold_ns"] for r in asked_["shapes"]) + sum(r["total_ns"] for r in asked_["uncharged"])
    assert charged == sum(s["end_ns"] - s["start_ns"] for s in spans)
    assert sum(r["calls"] for r in asked_["shapes"]) == sum(c["calls"] for c in asked_["concentration"])
    assert all(r["misses"] <= r["calls"] and r["cold_ns"] >= 0 for r in asked_["shapes"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(recordings())
def test_verdicts_do_not_change_when_an_unrelated_kernel_is_added(tmp_path: Path, w: Writer) -> None:
    before = asked(tprof.load(w.write(tmp_path / "before")))
    w.kernel(9, "unrelated")
    w.shape(90, 9, 1, M=9)
    w.span("jit", "compile", "unrelated", 500, 500 + 60 * MS, tid=1, done={"cache_hit": False})
    for i in range(50):
        w.launch(70 * MS + i, 70 * MS + i + 1, 90, tid=1)
    after = asked(tprof.load(w.write(tmp_path / "after")))

    def verdicts(found: Row) -> list[tuple[str, str, str, float]]:
        rows = [(r["kernel"], r["shape"], r["verdict"], r["of_kernel_share"]) for r in found["shapes"]]
        return sorted(row for row in rows if row[0] != "unrelated")

    assert verdicts(after) == verdicts(before)
    assert [r["verdict"] for r in after["shapes"] if r["kernel"] == "unrelated"] == ["warm"]


# ---- verdicts and concentration


@pytest.mark.parametrize(
    ("calls", "of_kernel", "cold_ns", "tuned", "said"),
    [
        (50, 100, COSTLY_NS, True, "pin"),
        (50, 100, COSTLY_NS, False, "warm"),
        (50, 100, COSTLY_NS - 1, True, "leave"),
        (1, 1, COSTLY_NS, True, "generic"),
        (2, 201, COSTLY_NS, True, "generic"),
        (2, 200, COSTLY_NS, True, "pin"),
        (99, 100_000, COSTLY_NS, True, "generic"),
        (100, 100_000, COSTLY_NS, False, "warm"),
        (0, 0, COSTLY_NS, True, "generic"),
    ],
)
def test_verdicts(calls: int, of_kernel: int, cold_ns: int, *, tuned: bool, said: str) -> None:
    assert verdict(calls, of_kernel, cold_ns, tuned=tuned) == said


def test_concentration_covers_calls_by_the_most_frequent_shapes() -> None:
    row = concentration("k", [1, 90, 5, 3, 1])
    assert (row["keys"], row["calls"], row["once"], row["hot_keys"]) == (5, 100, 2, 3)
    assert row["covered"] == [{"k": 1, "share": 0.9}, {"k": 2, "share": 0.95}, {"k": 5, "share": 1.0}]
    assert row["hot_share"] == 0.98
    assert [is_hot(n, 100) for n in (90, 5, 3, 1)] == [True, True, True, False]


# ---- the text of a key


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x float32[4, 8] y bfloat16[] M=4 s=0.5 flag=True n=-3", {"x[0]": 4, "x[1]": 8, "M": 4, "n": -3}),
        ("Scalar float[3,5]:[5,1] - float[7]", {"arg0[0]": 3, "arg0[1]": 5, "arg1[0]": 7}),
        ("grid 8x16 block 128", {"grid[0]": 8, "grid[1]": 16, "block[0]": 128}),
        ("(other launches)", {}),
    ],
)  # fmt: skip
def test_values_of_a_shape(text: str, found: dict[str, int]) -> None:
    assert values(text) == found


def test_a_key_is_its_arguments_and_without_any_its_grid() -> None:
    assert split_grid("grid 8 x float32[4]") == ("8", "x float32[4]")
    assert split_grid("grid 8x1") == ("8x1", "grid 8x1")
    assert split_grid("(other launches)") == (None, "(other launches)")


def test_a_label_names_what_differs_and_never_confuses_two() -> None:
    assert labels(["x float32[4] N=8 M=4", "x float32[5] N=8 M=5"]) == ["M=4", "M=5"]
    assert labels(["x float32[4]", "x bfloat16[4]"]) == ["x float32[4]", "x bfloat16[4]"]
    assert labels(["x float32[4] M=4", "x bfloat16[4] M=4", "x float32[5] M=5"])[0] == "x float32[4] M=4"
    assert labels(["x float32[4]"]) == ["x float32[4]"]
    assert labels([]) == []


def test_the_first_set_that_covers_a_kernel_decides() -> None:
    sets = (CONTEXT, BucketSet.of("rest", ("*",), all={"M": "1.."}))
    assert bucket_of("attention", "M=512", sets, "other") == "context.short"
    assert bucket_of("attention", "M=8000", sets, "other") == "context.other"
    assert bucket_of("mm", "M=8000", sets, "other") == "rest.all"
    assert bucket_of("mm", "M=8000", sets[:1], "other") is None


def test_a_recording_without_any_call_has_no_shapes() -> None:
    empty = replace(trace(), threads=table("threads"))
    assert asked(empty)["shapes"] == asked(empty)["timeline"] == []


def test_a_call_stays_cold_where_the_window_begins_after_what_was_cold_for_it() -> None:
    host = [call(0, 5, correlation=1), call(100, 105, correlation=2), call(200, 205, correlation=3)]
    small = align(trace(host, [kernel(110 * i, 110 * i + 9, correlation=i) for i in (1, 2, 3)]))
    spans = {
        "start_ns": [50],
        "end_ns": [90],
        "thread": [0],
        "phase": ["compile"],
        "basis": ["inferred"],
        "kernel": ["k"],
    }
    found = replace(small, spans=table("spans", spans))
    (row,) = asked(found, window=(95, 300))["shapes"]
    assert (row["calls"], row["misses"], row["cold_ns"], row["warm_calls"]) == (2, 1, 0, 1)
