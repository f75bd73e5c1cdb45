"""The incident at the command line: what one page each of `requests`, `shapes` and `cold` says, and how it is asked."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import pytest
from support.incident import BUCKETS, COLD_NS, LONG, TRAFFIC, WARM, incident

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(BUCKETS)
    return incident(tmp_path / "run")


def test_the_incident_is_on_one_page_of_requests(tprof: Callable, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    ran = tprof("requests", run, "--reference", "9.6ms")
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, ran.out.splitlines())) <= 100
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "all all 96 10.0 ms 10.9 s 10.9 s 10.9 s" in lines  # P99 with cold requests
    assert "all warm only 91 10.0 ms 10.0 ms 10.0 ms 10.0 ms" in lines  # and without
    # first and steady latency, their ratio, first and steady time to first token, the reference, the ratio to it
    assert any(line.startswith("all 96 5 10.9 s 10.0 ms 1,093 x 10.9 s 4.00 ms 9.60 ms 1.04 x") for line in lines)
    assert any(line.startswith("context.long 3 6 6.2 % 3 60.0 %") for line in lines)  # misses by bucket
    assert any(line.startswith("generate r66 10.9 s") and "9.00 s 1.80 s attention M=32768" in line for line in lines)


def test_cold_says_how_much_was_compiled_and_tuned(tprof: Callable, run: Path) -> None:
    totals = json.loads(tprof("cold", run, "-f", "json").out)["cold"]
    assert (totals["compile_ns"], totals["autotune_ns"]) == (5 * 9_000_000_000, 5 * 1_800_000_000)


def test_another_recording_is_a_reference(tprof: Callable, run: Path, tmp_path: Path) -> None:
    before = incident(tmp_path / "before", prepared=True)
    rows = json.loads(tprof("requests", run, "--reference", before, "-f", "json").out)["first_steady"]
    assert (rows[0]["reference_ns"], rows[0]["to_reference_ratio"]) == (WARM, 1.0)
    assert tprof("requests", run, "--reference", tmp_path / "nothing").code == 1


def test_a_reference_without_warm_requests_cannot_be_one(tprof: Callable, run: Path, small: Path) -> None:
    ran = tprof("requests", run, "--reference", small)
    assert (ran.code, ran.out) == (4, "")
    assert "no request without cold start" in ran.err


def test_the_whole_job(tprof: Callable, run: Path) -> None:
    ran = tprof("requests", run, "--job")
    assert ran.code == 0
    assert "Cold start of the whole job" in ran.out
    assert "Latency of requests" not in ran.out
    (row,) = csv.DictReader(io.StringIO(tprof("requests", run, "--job", "-f", "csv").out))
    assert (row["requests"], row["cold_exposed_ns"], row["verdict"]) == (str(len(TRAFFIC)), "", "prepare")
    assert int(row["cold_ns"]) == (2 + len(LONG)) * COLD_NS
    assert json.loads(tprof("requests", run, "-f", "json").out)["job"]["cold_ns"] == int(row["cold_ns"])


def test_shapes_show_verdicts_and_with_a_kernel_their_life(tprof: Callable, run: Path) -> None:
    page = tprof("shapes", run)
    assert (page.code, page.err) == (0, "")
    assert max(map(len, page.out.splitlines())) <= 80
    assert page.out.count(" pin ") == 2 + len(LONG)
    assert "Life of each shape" not in page.out
    story = tprof("shapes", run, "--kernel", "att*", "--top", 200)
    assert "Life of each shape" in story.out
    assert story.out.count("cold call") == 2 + len(LONG)


def test_shapes_as_files(tprof: Callable, run: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(tprof("shapes", run, "-f", "csv").out)))
    assert {row["bucket"] for row in rows} == {"context.short", "context.long"}
    assert sum(int(row["calls"]) for row in rows) == len(TRAFFIC)
    assert json.loads(rows[0]["calls_by_slice"])
    steps = list(csv.DictReader(io.StringIO(tprof("shapes", run, "-f", "csv", "--table", "timeline").out)))
    assert sum("call" in step["step"] for step in steps) == len(TRAFFIC)
    assert tprof("shapes", run, "-f", "markdown").out.startswith("# shapes")


def test_no_shapes_cannot_be_judged(tprof: Callable, cpu_only: Path, run: Path) -> None:
    assert "no call of a compiled kernel" in tprof("shapes", cpu_only).err
    ran = tprof("shapes", run, "--kernel", "nothing*")
    assert ran.code == 4
    assert "nothing*" in ran.err


def test_a_wrong_bucket_is_a_usage_error(tprof: Callable, run: Path, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.tprof.buckets.context]\nshort = {M = "few"}\n')
    ran = tprof("shapes", run)
    assert ran.code == 2
    assert "context.short.M" in ran.err
