"""Each finding that a profiler's trace can show: a trace that triggers it, and one alike that must not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.generate import Example, examples, windows
from support.small import call, early, in_one_graph, joined, kernel, span, trace, waiting

from tprof.align import AlignOptions, align
from tprof.analyze import Attribution, Options, summarize
from tprof.analyze.findings.facts import inside
from tprof.intervals import union
from tprof.model import Trace, table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

MS, US = 1_000_000, 1_000
PHASES = {
    "compile it": "compile", "tune it": "autotune", "trace it": "graph_compile", "capture it": "graph_capture",
    "init it": "init", "look it up": "cache", "build it": "launcher_build", "load it": "module_load",
}  # fmt: skip
Row = dict[str, Any]
short = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def findings(found: Trace, **options: Any) -> list[Row]:
    return summarize(Attribution(align(found, AlignOptions(PHASES))), Options(**options)).payload["findings"]


def named(found: Trace, code: str) -> Row | None:
    return next((row for row in findings(found) if row["code"] == code), None)


# ---- cold phases, in a request or before it


def served(what: str, *, inside: bool) -> Trace:
    """Something cold for 9 ms, then one launch; a request of 10 ms around it, or after it."""
    begin = 0 if inside else 9 * MS
    host = [span(begin, 10 * MS, "request a"), span(0, 9 * MS, what), call(9 * MS, 9 * MS + 10, correlation=1)]
    return trace(host, [kernel(9 * MS + 20, 10 * MS, correlation=1)])


IN_REQUEST = {
    "compile it": "compile-in-request", "look it up": "compile-in-request", "build it": "compile-in-request",
    "load it": "compile-in-request", "tune it": "tuning-in-request", "trace it": "graph-compile-in-request",
    "capture it": "graph-capture-in-request", "init it": "init-in-request",
}  # fmt: skip


@pytest.mark.parametrize("what", PHASES)
def test_cold_phases_inside_and_outside_of_requests(what: str) -> None:
    codes = {row["code"]: row for row in findings(served(what, inside=True))}
    row = codes[IN_REQUEST[what]]
    assert (row["cost_ns"], row["share"], row["of"]) == (9 * MS, 0.9, "requests' wall time")
    assert (row["start_ns"], row["end_ns"], row["window"]) == (0, 10 * MS, "0ms:10ms")
    assert codes["cold-request"]["cost_ns"] == 9 * MS
    assert f"cold-{PHASES[what]}" not in codes
    codes = {row["code"]: row for row in findings(served(what, inside=False))}
    assert {IN_REQUEST[what], "cold-request"} & set(codes) == set()
    assert (codes[f"cold-{PHASES[what]}"]["cost_ns"], codes[f"cold-{PHASES[what]}"]["of"]) == (9 * MS, "window")


def test_the_first_initialisation_of_the_driver_is_found_without_any_annotation() -> None:
    host = [span(0, 10 * MS, "request a"), call(0, 3 * MS, "cuInit"), call(9 * MS, 9 * MS + 10, correlation=1)]
    row = named(trace(host, [kernel(9 * MS + 20, 10 * MS, correlation=1)]), "init-in-request")
    assert row is not None
    assert (row["cost_ns"], row["basis"]) == (3 * MS, "recorded")


def test_requests_that_wait_for_one_compile_together_count_once() -> None:
    host = [
        span(0, 10 * MS, "request a", "startend"),
        span(0, 9 * MS, "compile it"),
        span(1 * MS, 9 * MS, "request b", "startend", thread=1, tid=2),
        span(1 * MS, 9 * MS, "compile it", thread=1, tid=2),
    ]
    row = named(trace(host), "compile-in-request")
    assert row is not None
    assert (row["cost_ns"], row["count"], row["end_ns"] - row["start_ns"]) == (9 * MS, 2, 10 * MS)


# ---- pairs: the first triggers the code, the second must not


def stepwise(*, wait: bool) -> Trace:
    """Five launches in a request, each 200 us after the last; the host waits for each kernel, or does other work."""
    host, device = [span(0, 1_000 * US, "request a")], []
    for i in range(5):
        t = 200 * US * i
        host.append(call(t, t + 5 * US, correlation=i))
        device.append(kernel(t + 5 * US, t + 60 * US, correlation=i))
        if wait:
            host.append(call(t + 6 * US, t + 62 * US, "cudaStreamSynchronize"))
    return trace(host, device)


def eager(kernel_ns: int) -> Trace:
    """Forty launches, one every 20 us."""
    host = [call(20 * US * i, 20 * US * i + 18 * US, correlation=i) for i in range(40)]
    device = [kernel(20 * US * (i + 1), 20 * US * (i + 1) + kernel_ns, correlation=i) for i in range(40)]
    return trace(host, device)


def allocating(at: int) -> Trace:
    host = [
        span(10 * MS, 12 * MS, "request a"),
        call(at, at + 1 * MS, "cudaMalloc"),
        call(11 * MS, 11 * MS + 10, correlation=1),
    ]
    return trace(host, [kernel(11 * MS + 10, 12 * MS, correlation=1)])


def lossy(lost: int, *, gap_ns: int = 1 * MS) -> Trace:
    """Twenty launches of which some left no kernel."""
    host = [call(gap_ns * i, gap_ns * i + 5 * US, correlation=i) for i in range(20)]
    kept = [i for i in range(20) if not 5 <= i < 5 + lost]
    return trace(host, [kernel(gap_ns * i + 5 * US, gap_ns * i + 10 * US, correlation=i) for i in kept])


def graphs(kind: str) -> Trace:
    """Two graph launches: shown as a whole (`graph`), by kernel, or not at all."""
    host = [call(0, 10, correlation=1)]
    host += [call(MS * i, MS * i + 10 * US, "cudaGraphLaunch", correlation=10 + i) for i in (1, 2)]
    device = [kernel(20, 30, correlation=1), kernel(4 * MS, 4 * MS + 10)]
    if kind != "none":
        device += [kernel(MS * i + 10 * US, MS * i + 900 * US, kind=kind, correlation=10 + i) for i in (1, 2)]
    return trace(host, device)


def whole_graph(kind: str) -> Trace:
    return trace([call(0, 10, "cudaGraphLaunch", correlation=1)], [kernel(20, 5 * MS, kind=kind, correlation=1)])


def running_on(step: int) -> Trace:
    """Ten kernels of 1 ms on one stream."""
    host = [call(i, i + 1, correlation=i) for i in range(10)]
    return trace(host, [kernel(100 + step * i, 100 + step * i + MS, correlation=i) for i in range(10)])


def linked(*, links: bool) -> Trace:
    host = [call(MS * i, MS * i + 10, correlation=i) for i in range(3)]
    return trace(host, [kernel(MS * i + 20, MS * i + 30, correlation=i if links else None) for i in range(3)])


def tuned(work_ns: int) -> Trace:
    """A benchmark of 3 ms on the device, then work."""
    host = [span(0, 5 * MS, "tune it"), call(10, 20, correlation=1), call(6 * MS, 6 * MS + 10, correlation=2)]
    return trace(
        host, [kernel(30, 3 * MS, "flush", correlation=1), kernel(6 * MS + 20, 6 * MS + work_ns, "mm", correlation=2)]
    )


def searched(*, key: bool) -> Trace:
    """Two candidates of one kernel, and tuning time; with a recorder's span around them, or without."""
    rows = {"start_ns": [0, MS], "end_ns": [MS, 2 * MS], "thread": 0, "kernel": "mm", "basis": "inferred"}
    host = [span(0, 3 * MS, "tune it")]
    if key:
        said = '{"kind": "autotune", "key_names": ["M"], "key": ["512"]}'
        host.append(span(0, 3 * MS, "mm", "cold", phase="autotune", kernel="mm", attrs=said))
    return replace(trace(host), candidates=table("candidates", rows, 2))


def looked_up(*, told: bool) -> Trace:
    """A compile in a trace that tells hits from misses, or does not."""
    rows = {"start_ns": [0], "end_ns": [9 * MS], "thread": 0, "kernel": "mm", "basis": "recorded", "cache_hit": [False]}
    found = served("compile it", inside=True)
    return replace(found, compiles=table("compiles", rows if told else {}, int(told)))


def ranks(cold: str, *, late: bool = True) -> Trace:
    """Two processes with one collective each; the second begins its own 8 ms later (or not), cold or busy meanwhile."""
    begin = 9 * MS if late else MS
    host = [
        call(MS, MS + 10, correlation=1),
        span(0, begin, cold, thread=1, pid=2, tid=2),
        call(begin, begin + 10, thread=1, pid=2, tid=2, correlation=1),
    ]
    device = [
        kernel(MS + 20, 10 * MS, "ncclDevKernel_AllReduce_Sum_f16", correlation=1),
        kernel(begin + 20, 10 * MS, "ncclDevKernel_AllReduce_Sum_f16", correlation=1, pid=2, device=1),
    ]
    devices = {"host": ["", ""], "pid": [1, 2], "ordinal": [0, 0], "source": [0, 0]}
    return replace(
        trace(host, device),
        threads=table("threads", {"host": ["", ""], "pid": [1, 2], "tid": [1, 2]}),
        processes=table("processes", {"host": ["", ""], "pid": [1, 2], "rank": [0, 1]}),
        devices=table("devices", devices),
    )


def compiled_twice(*, hit: bool = False, again: int = 2 * MS) -> Trace:
    """A kernel compiled in two processes that ran at the same time, or one after the other."""
    rows = {
        "start_ns": [0, again], "end_ns": [3 * MS, again + 3 * MS], "thread": [0, 1], "kernel": ["mm", "mm"],
        "basis": "recorded", "cache_hit": [False, hit],
    }  # fmt: skip
    host = [span(0, 4 * MS, "a"), span(again, again + 4 * MS, "b", thread=1, pid=2, tid=2)]
    both = table("threads", {"host": ["", ""], "pid": [1, 2], "tid": [1, 2]})
    return replace(trace(host), threads=both, compiles=table("compiles", rows, 2))


def idling(name: str, kind: str) -> Trace:
    """A host event of 8 ms between two launches."""
    host = [call(0, 10, correlation=1), span(MS, 9 * MS, name, kind), call(9 * MS, 9 * MS + 10, correlation=2)]
    return trace(host, [kernel(20, MS, correlation=1), kernel(9 * MS + 20, 10 * MS, correlation=2)])


Pair = tuple["Callable[[], Trace]", "Callable[[], Trace]"]
PAIRS: dict[str, Pair] = {
    "sync-in-hot-path": (lambda: stepwise(wait=True), lambda: stepwise(wait=False)),
    "launch-bound": (lambda: eager(5 * US), lambda: eager(19 * US)),
    "allocator-growth": (lambda: allocating(10 * MS), lambda: allocating(8 * MS)),
    "lost-kernel-records": (lambda: lossy(5), lambda: lossy(0)),
    "hidden-graph-kernels": (lambda: graphs("graph"), lambda: graphs("kernel")),
    "idle-artefact": (lambda: lossy(5), lambda: lossy(0)),
    "unattributed": (lambda: linked(links=False), lambda: linked(links=True)),
    "requests-unknown": (lambda: trace([span(0, MS, "compile it")]), lambda: served("compile it", inside=True)),
    "tuning-tops-kernels": (lambda: tuned(MS), lambda: tuned(4 * MS)),
    "tuning-key-unknown": (lambda: searched(key=False), lambda: searched(key=True)),
    "cache-unknown": (lambda: looked_up(told=False), lambda: looked_up(told=True)),
    "rank-skew": (lambda: ranks("compile it"), lambda: ranks("read data")),
    "compiled-by-many": (compiled_twice, lambda: compiled_twice(hit=True)),
    "idle-host": (lambda: idling("read data", "range"), lambda: idling("aten::mm", "op")),
    "idle-framework": (lambda: idling("aten::mm", "op"), lambda: idling("read data", "range")),
    "idle-memory": (lambda: idling("cudaMemcpyAsync", "runtime"), lambda: idling("aten::mm", "op")),
    "idle-sync": (lambda: idling("cudaDeviceSynchronize", "runtime"), lambda: idling("aten::mm", "op")),
    "idle-launch": (lambda: waiting(call(0, 10, correlation=1), call(MS, 9 * MS, correlation=2)), early),
    "idle-turnaround": (early, lambda: early(stream=8)),
    "idle-dependency": (lambda: early(stream=8), early),
    "idle-graph": (in_one_graph, early),
    "idle-collective": (lambda: idling("nccl:all_reduce", "op"), lambda: idling("aten::mm", "op")),
}


@pytest.mark.parametrize("code", PAIRS)
def test_a_finding_is_triggered_and_not_by_a_trace_alike(code: str) -> None:
    triggers, alike = PAIRS[code]
    assert named(triggers(), code) is not None
    assert named(alike(), code) is None


def test_what_cannot_be_judged_costs_nothing_and_comes_last() -> None:
    rows = findings(searched(key=False))
    assert [(row["code"], row["cost_ns"], row["basis"]) for row in rows[-2:]] == [
        ("requests-unknown", 0, "unattributed"),
        ("tuning-key-unknown", 0, "unattributed"),
    ]
    assert all("record" in row["fix"] for row in rows[-2:])


def test_a_window_without_length_costs_nothing() -> None:
    assert findings(allocating(10 * MS), window=(11 * MS, 11 * MS)) == []


# ---- figures


def test_waits_cost_the_idle_time_that_they_begin() -> None:
    row = named(stepwise(wait=True), "sync-in-hot-path")
    assert row is not None
    # Four gaps lie between kernels, 60 to 205 us after each launch.
    assert (row["cost_ns"], row["count"], row["of"]) == (4 * 145 * US, 4, "time in requests")
    assert "cudaStreamSynchronize (4)" in row["why"]


def test_a_launch_bound_stretch_costs_its_gaps() -> None:
    row = named(eager(5 * US), "launch-bound")
    assert row is not None
    assert (row["cost_ns"], row["count"]) == (39 * 15 * US, 39)
    assert named(eager(5 * US), "idle-launch") is None


def test_idle_time_between_requests_is_nobodys() -> None:
    host = [span(0, MS, "request a"), span(9 * MS, 10 * MS, "request b")]
    host += [call(0, 10, correlation=1), call(9 * MS, 9 * MS + 10, correlation=2)]
    found = trace(host, [kernel(20, MS, correlation=1), kernel(9 * MS + 20, 10 * MS, correlation=2)])
    assert [row["code"] for row in findings(found)] == []
    assert [row["code"] for row in findings(replace(found, host=found.host.slice(2)))] == ["idle-host"]


def test_lost_records_make_only_the_gaps_doubtful_in_which_they_were_launched() -> None:
    row = named(lossy(5), "lost-kernel-records")
    assert row is not None
    assert (row["cost_ns"], row["count"], row["basis"]) == (6 * MS - 5 * US, 5, "unattributed")
    assert row["title"].startswith("5 of 20 launches")


def test_a_runtime_call_and_its_driver_call_are_one_launch() -> None:
    host = [call(0, 100, correlation=1), call(10, 90, "cuLaunchKernel", kind="driver", correlation=1)]
    assert named(trace(host, [kernel(200, 300, correlation=1), kernel(900, 1000)]), "lost-kernel-records") is None


def test_graphs_without_any_record_make_gaps_doubtful() -> None:
    row = named(graphs("none"), "hidden-graph-kernels")
    assert row is not None
    assert (row["of"], row["cost_ns"]) == ("device's idle time", 4 * MS - 30)


@pytest.mark.parametrize(
    ("artefact", "honest", "looks"),
    [
        (lossy(5), lossy(0), "100 % idle"),
        (graphs("none"), graphs("kernel"), "100 % idle"),
        (whole_graph("graph"), whole_graph("kernel"), "0 % idle"),
        (running_on(MS // 2), running_on(MS), "0 % idle"),
    ],
)
def test_idle_figures_that_are_artefacts(artefact: Trace, honest: Trace, looks: str) -> None:
    row = named(artefact, "idle-artefact")
    assert row is not None
    assert looks in row["title"]
    assert (row["cost_ns"], row["basis"]) == (0, "unattributed")
    assert not [r for r in findings(artefact) if r["code"].startswith("idle-") and r["code"] != "idle-artefact"]
    assert named(honest, "idle-artefact") is None


def test_skew_is_the_cold_part_of_what_the_others_waited() -> None:
    row = named(ranks("compile it"), "rank-skew")
    assert row is not None
    assert row["title"].startswith("rank 1 was cold")
    assert row["cost_ns"] == 8 * MS - 20
    assert named(ranks("compile it", late=False), "rank-skew") is None


def test_a_kernel_compiled_by_a_later_process_is_not_a_rank_that_repeats() -> None:
    row = named(compiled_twice(), "compiled-by-many")
    assert row is not None
    assert (row["cost_ns"], row["basis"]) == (3 * MS, "inferred")
    assert named(compiled_twice(again=20 * MS), "compiled-by-many") is None


# ---- properties


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9))),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9))),
)
def test_what_lies_inside_equals_counting(spent: list[tuple[int, int]], asked: list[tuple[int, int]]) -> None:
    start, end = (np.array([s for s, _ in spent], np.int64), np.array([s + n for s, n in spent], np.int64))
    low, high = (np.array([s for s, _ in asked], np.int64), np.array([s + n for s, n in asked], np.int64))
    covered = {t for s, n in spent for t in range(s, s + n)}
    expected = [len(covered & set(range(s, s + n))) for s, n in asked]
    assert inside(union(start, end), low, high).tolist() == expected


def sound(rows: Sequence[Row]) -> None:
    assert [row["cost_ns"] for row in rows] == sorted((row["cost_ns"] for row in rows), reverse=True)
    for row in rows:
        assert 0 <= row["cost_ns"] <= row["end_ns"] - row["start_ns"]
        assert 0 <= row["share"] <= 1
        assert (row["basis"] == "unattributed") >= (row["cost_ns"] == 0)
        assert row["title"]
        assert row["fix"]


@pytest.mark.parametrize("code", PAIRS)
def test_no_finding_of_the_pairs_costs_more_than_its_window(code: str) -> None:
    for make in PAIRS[code]:
        sound(findings(make()))


@short
@given(examples(), st.data())
def test_no_finding_costs_more_than_its_window(example: Example, data: st.DataObject) -> None:
    window = data.draw(windows(example.oracle.extent))
    sound(summarize(Attribution(example.trace), Options(window=window)).payload["findings"])


@pytest.mark.parametrize("code", PAIRS)
def test_an_unrelated_kernel_changes_no_finding_about_another(code: str) -> None:
    for make in PAIRS[code]:
        before = make()
        about = [row for row in findings(before) if row["kernel"]]
        assert [row for row in findings(with_unrelated(before)) if row["kernel"]] == about


def with_unrelated(found: Trace) -> Trace:
    """With a kernel that another thread found on disk, timed, and launched."""
    begin = int(found.host["start_ns"].to_numpy().min())
    last = found.threads.num_rows - 1
    rows = {"start_ns": [begin], "end_ns": [begin + 10], "thread": last, "kernel": "unrelated", "basis": "recorded"}
    return replace(
        found,
        compiles=joined(found.compiles, table("compiles", {**rows, "cache_hit": [True]}, 1)),
        candidates=joined(found.candidates, table("candidates", rows, 1)),
    )
