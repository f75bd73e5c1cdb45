"""The incident, read off one page: latency with and without cold start, causes, buckets, first token, reference."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from support.generate import Example, examples
from support.incident import CANDIDATES, COLD_NS, COMPILE, LONG, MS, TOKEN, TRAFFIC, TUNE, WARM, incident
from support.small import call, kernel, span, trace

import tprof
from tprof.align import AlignOptions, align, combine
from tprof.analyze import Attribution, Options, requests
from tprof.analyze.latency import distribution, first_and_steady, job
from tprof.analyze.rows import percentile
from tprof.buckets import BucketSet
from tprof.events import COLD_PHASES

if TYPE_CHECKING:
    from pathlib import Path

    from tprof.facade import Trace

Row = dict[str, Any]
CONTEXT = BucketSet.of("context", ("attention",), short={"M": "1..4096"}, long={"M": "16384.."})
COLD = 2 + len(LONG)  # requests: the first of each length


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return tprof.load(incident(tmp_path_factory.mktemp("incident") / "run"))


@pytest.fixture(scope="module")
def found(cold: Trace) -> Row:
    return cold.requests(Options(buckets=(CONTEXT,)), {"all": 9_600_000}).to_dict()


def row_of(rows: list[Row], **wanted: object) -> Row:
    (row,) = [r for r in rows if all(r[k] == v for k, v in wanted.items())]
    return row


# ---- the incident


def test_percentiles_with_and_without_cold_start(found: Row) -> None:
    every, less, warm = (row_of(found["latency"], name="all", of=of) for of in ("all", "less cold tax", "warm only"))
    assert (every["n"], less["n"], warm["n"]) == (len(TRAFFIC), len(TRAFFIC), len(TRAFFIC) - COLD)
    assert (every["p50_ns"], every["p99_ns"], every["max_ns"]) == (WARM, COLD_NS + WARM, COLD_NS + WARM)
    assert less["p99_ns"] == warm["p99_ns"] == WARM


def test_first_and_steady_latency_and_token_and_the_reference(found: Row) -> None:
    row = row_of(found["first_steady"], by="all")
    assert (row["n"], row["cold_requests"], row["steady_n"]) == (len(TRAFFIC), COLD, len(TRAFFIC) - COLD)
    assert (row["first_ns"], row["steady_ns"]) == (COLD_NS + WARM, WARM)
    assert row["first_to_steady_ratio"] == (COLD_NS + WARM) / WARM
    assert (row["first_token_first_ns"], row["first_token_steady_ns"]) == (COLD_NS + TOKEN, TOKEN)
    assert row["first_token_first_ns"] > 10_000 * MS
    assert row["to_reference_ratio"] == pytest.approx(1.0417, abs=1e-4)


def test_each_bucket_has_its_first_and_its_steady_request(found: Row) -> None:
    rows = {
        r["name"]: (r["n"], r["cold_requests"], r["first_ns"]) for r in found["first_steady"] if r["by"] == "bucket"
    }
    shorts = len(TRAFFIC) - 2 * len(LONG)
    assert rows == {
        "context.short": (shorts, 2, COLD_NS + WARM), "context.long": (2 * len(LONG), len(LONG), COLD_NS + WARM)
    }  # fmt: skip


def test_misses_are_counted_by_bucket(found: Row) -> None:
    long, short = found["buckets"]
    assert (long["bucket"], long["calls"], long["misses"], long["compiles"]) == ("context.long", 6, 3, 3 * CANDIDATES)
    assert (short["bucket"], short["misses"], short["calls"]) == ("context.short", 2, len(TRAFFIC) - 6)
    assert long["of_misses_share"] == 0.6
    assert long["of_calls_share"] == 6 / len(TRAFFIC)
    assert (long["compile_ns"], long["autotune_ns"]) == (3 * CANDIDATES * COMPILE, 3 * TUNE)


def test_a_cold_request_names_its_cause(found: Row) -> None:
    rows = [r for r in found["requests"] if r["cold_tax_ns"]]
    assert [(r["cause"], r["misses"], r["kernel_calls"]) for r in rows] == [("compile", 1, 1)] * COLD
    (cause,) = rows[-1]["causes"]
    assert (cause["kernel"], cause["label"], cause["bucket"]) == ("attention", "M=32768", "context.long")
    assert cause["phases"] == {
        "compile": CANDIDATES * COMPILE,
        "autotune": TUNE,
        "module_load": COLD_NS - CANDIDATES * COMPILE - TUNE,
    }
    assert sum(cause["phases"].values()) == cause["cold_ns"] == rows[-1]["cold_tax_ns"] == COLD_NS
    warm = [r for r in found["requests"] if not r["cold_tax_ns"]]
    assert {(r["cause"], len(r["causes"]), r["misses"]) for r in warm} == {(None, 0, 0)}


def test_the_prepared_service_has_no_cold_request(tmp_path: Path) -> None:
    found = tprof.load(incident(tmp_path / "run", prepared=True)).requests(Options(buckets=(CONTEXT,))).to_dict()
    assert {r["cold_tax_ns"] for r in found["requests"]} == {0}
    assert row_of(found["first_steady"], by="all")["first_to_steady_ratio"] == 1
    assert {b["misses"] for b in found["buckets"]} == {0}
    assert (found["job"]["verdict"], found["job"]["cold_ns"]) == ("leave it", 0)


def test_top_limits_what_is_listed_and_not_what_is_counted(cold: Trace) -> None:
    found = cold.requests(Options(top=3))
    assert [len(found.tables[t]) for t in ("requests", "causes")] == [3, 3]
    assert found.payload["latency"][0]["n"] == len(TRAFFIC)


# ---- parts


@pytest.mark.parametrize(
    ("n", "p50", "p95", "p99"), [(1, 1, 1, 1), (2, 1, 2, 2), (20, 10, 19, 20), (100, 50, 95, 99), (101, 51, 96, 100)]
)
def test_percentiles_are_nearest_rank(n: int, p50: int, p95: int, p99: int) -> None:
    values = np.arange(1, n + 1)
    assert tuple(percentile(values, p) for p in (50, 95, 99)) == (p50, p95, p99)
    assert percentile(values[:0], 50) is None


def request_row(name: str, wall: int, tax: int, **rest: Any) -> Row:
    return {"name": name, "wall_ns": wall, "cold_tax_ns": tax, "first_token_ns": None, "device_work_ns": 0, **rest}


def test_names_that_come_once_are_in_all_only() -> None:
    rows = [request_row("a", 9, 5), request_row("a", 4, 0), request_row("b", 4, 0)]
    assert list(dict.fromkeys(r["name"] for r in distribution(rows))) == ["all", "a"]
    assert [(r["name"], r["first_ns"], r["steady_ns"]) for r in first_and_steady(rows)] == [("all", 9, 4), ("a", 9, 4)]


def test_a_counter_behind_a_hash_is_no_part_of_a_name() -> None:
    rows = [request_row(name, 4, 0) for name in ("r#0 L=1", "r#1 L=1", "r#12 L=2", "r#13 L=2", "r#14")]
    assert [(r["name"], r["n"]) for r in first_and_steady(rows)] == [("all", 5), ("r#* L=1", 2), ("r#* L=2", 2)]


def test_without_a_warm_request_nothing_is_steady() -> None:
    (row,) = first_and_steady([request_row("a", 9, 5), request_row("a", 8, 5)], {"all": 4})
    assert (row["steady_ns"], row["first_to_steady_ratio"], row["to_reference_ratio"]) == (None, None, None)


@pytest.mark.parametrize(
    ("exposed", "verdict", "after"),
    [(0, "leave it", 1), (5, "leave it", 50), (10, "prepare", 100), (None, "prepare", 9901)],
)
def test_a_job_may_leave_its_cold_start(exposed: int | None, verdict: str, after: int) -> None:
    row = job(1_000, 1_000, exposed, {"n": 7, "steady_ns": 10})
    assert (row["verdict"], row["amortised_after"]) == (verdict, after)
    paid = 1_000 if exposed is None else exposed
    assert paid / (paid + after * 10) < 0.01
    assert not paid or paid / (paid + (after - 1) * 10) >= 0.01


def test_the_first_token_of_a_plain_recording_is_a_range_or_a_mark_on_the_threads_own() -> None:
    host = [
        span(0, 100, "request#1"), span(10, 60, "decode first_token"), span(20, 30, "first_token", thread=1),
        span(200, 300, "request#2"), span(250, 250, "First_Token ready", "mark"), span(400, 500, "request#3"),
    ]  # fmt: skip
    rows = requests(Attribution(align(trace(host))), Options()).to_dict()["requests"]
    assert [r["first_token_ns"] for r in rows] == [60, 50, None]


def test_requests_of_several_sources_name_theirs() -> None:
    host = [span(0, 100, "request#1"), call(10, 20, correlation=1)]
    one, two = (align(trace(host, [kernel(30, 40, correlation=1)])) for _ in range(2))
    two = replace(two, sources=two.sources.set_column(0, two.sources.schema.field(0), [["other"]]))
    rows = requests(Attribution(combine([one, two])), Options()).to_dict()["requests"]
    assert sorted(r["source"] for r in rows) == ["other", "small"]
    assert "source" not in requests(Attribution(one), Options()).to_dict()["requests"][0]


def test_a_mapped_range_is_a_cause_without_a_kernel() -> None:
    found = Attribution(
        align(trace([span(0, 100, "request#1"), span(10, 40, "tune")]), AlignOptions({"tune": "autotune"}))
    )
    (row,) = requests(found, Options()).to_dict()["requests"]
    assert [(c["kernel"], c["shape"], c["cold_ns"]) for c in row["causes"]] == [(None, None, 30)]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(examples())
def test_budgets_and_causes_sum_exactly(example: Example) -> None:
    result = requests(Attribution(example.trace), Options())
    for row, at in zip(result.payload["requests"], example.requests, strict=True):
        expected, event = example.oracle.request(at), example.oracle.host[at]
        assert (row["phases"], row["cold_tax_ns"]) == (expected.phases, expected.tax)
        assert sum(row["phases"].values()) == row["wall_ns"]
        cold = sorted(
            (s.start, s.end) for s in example.oracle.spans if s.thread == event.thread and s.phase in COLD_PHASES
        )
        if all(end <= start for (_, end), (start, _) in pairwise(cold)):  # as `align` makes them
            within = sum(max(min(end, event.end) - max(start, event.start), 0) for start, end in cold)
            assert sum(cause["cold_ns"] for cause in row["causes"]) == within
    assert {r["n"] for r in result.payload["latency"] if r["of"] == "all"} <= {len(example.requests)}
