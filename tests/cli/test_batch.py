from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd
from support import job

from tprof.batch.work import EXTRACTS, TABLES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pytest


def test_every_source_and_what_failed(tprof: Callable, small: Path, cpu_only: Path, tmp_path: Path) -> None:
    ran = tprof("batch", small, cpu_only, tmp_path / "gone.json", "-o", tmp_path / "out", "-j", 2)
    assert ran.code == 0
    assert "gone.json: does not exist" in " ".join(ran.err.split())
    overall = json.loads((tmp_path / "out" / "overall.json").read_text())
    assert {(r["source"], r["requests"], r["busy_ns"]) for r in overall["results"]} == {
        (str(small), 1, 2000),
        (str(cpu_only), 0, 0),
    }
    failed = json.loads((tmp_path / "out" / "failed.json").read_text())["failed"]
    assert [(f["source"], f["exit_code"]) for f in failed] == [(str(tmp_path / "gone.json"), 1)]
    assert {p.parents[1].name for p in (tmp_path / "out").glob("*/trace=*/part.parquet")} <= {
        *TABLES,
        *EXTRACTS,
        "warnings",
    }
    kernels = pd.read_parquet(tmp_path / "out" / "kernels")
    assert kernels["total_ns"].tolist() == [2000]
    assert kernels["trace"].astype(str).str.startswith("small.json-").all()
    (summary,) = (tmp_path / "out" / "summary").glob("small.json-*")
    assert summary.read_text() == tprof("summary", small, "-f", "json").out


def test_what_is_finished_is_skipped_and_what_changed_is_done_again(tprof: Callable, tmp_path: Path) -> None:
    first, second, *_ = job.write(tmp_path / "job")
    run = ("batch", first, second, "-o", tmp_path / "out", "-j", 1)
    assert tprof(*run).code == 0
    marks = sorted((tmp_path / "out" / "finished").iterdir())
    before = [mark.stat().st_mtime_ns for mark in marks]
    assert tprof(*run).code == 0
    assert [mark.stat().st_mtime_ns for mark in marks] == before
    second.write_text(second.read_text() + " ")
    assert tprof(*run).code == 0
    assert [mark.stat().st_mtime_ns == was for mark, was in zip(marks, before, strict=True)] == [True, False]
    assert tprof(*run, "--range", "step*").code == 0  # another question
    assert all(mark.stat().st_mtime_ns != was for mark, was in zip(marks, before, strict=True))
    before = [mark.stat().st_mtime_ns for mark in marks]
    assert tprof(*run, "--range", "step*", "--force").code == 0
    assert all(mark.stat().st_mtime_ns != was for mark, was in zip(marks, before, strict=True))


def test_the_result_is_of_what_was_asked_for_last(tprof: Callable, small: Path, cpu_only: Path, tmp_path: Path) -> None:
    for sources in ((small, cpu_only), (small,)):
        assert tprof("batch", *sources, "-o", tmp_path / "out", "-j", 1).code == 0
    assert [p.name[:10] for p in (tmp_path / "out" / "finished").iterdir()] == ["small.json"]
    assert not list((tmp_path / "out").glob("*/trace=cpu*"))


def test_a_source_that_is_gone_takes_its_result_with_it(tprof: Callable, tmp_path: Path) -> None:
    first, second, *_ = job.write(tmp_path / "job")
    run = ("batch", first, second, "-o", tmp_path / "out", "-j", 1, "-f", "json")
    assert tprof(*run).code == 0
    second.unlink()
    result = json.loads(tprof(*run).out)
    assert [row["source"] for row in result["results"]] == [str(first)]
    assert [row["source"] for row in result["failed"]] == [str(second)]
    assert not list((tmp_path / "out").glob("*/trace=rank-1*"))


def test_lists_and_patterns(tprof: Callable, small: Path, tmp_path: Path) -> None:
    job.write(tmp_path / "job")
    (tmp_path / "list.txt").write_text(f"# of today\n{small}\n\n{tmp_path}/job/rank-[01].json\n{small}\n")
    ran = tprof("batch", f"@{tmp_path}/list.txt", tmp_path / "job" / "rank-7*", "-o", tmp_path / "out", "-f", "json")
    names = sorted(row["source"].rpartition("/")[2] for row in json.loads(ran.out)["results"])
    assert names == ["rank-0.json", "rank-1.json", "rank-7.json", "small.json"]
    assert "cannot be read as a list" in tprof("batch", "@none.txt", "-o", tmp_path / "out").err


def test_nothing_at_all(tprof: Callable, tmp_path: Path) -> None:
    ran = tprof("batch", tmp_path / "gone.json", "-o", tmp_path / "out", "-j", 1)
    assert ran.code == 1
    assert "none of 1 sources" in ran.err
    (tmp_path / "none").mkdir()
    assert tprof("batch", tmp_path / "none", "-o", tmp_path / "new").code == 2


def test_a_folder_that_holds_something_else_is_kept(tprof: Callable, small: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    ran = tprof("batch", small, "-o", tmp_path)
    assert ran.code == 2
    assert "no batch" in ran.err
    assert tprof("batch", small, "-o", tmp_path / "mine.txt").code == 2


def test_a_planted_straggler_and_a_duplicate_compile_are_named(tprof: Callable, tmp_path: Path) -> None:
    job.write(tmp_path / "job")
    ran = tprof("batch", tmp_path / "job", "-o", tmp_path / "out", "--phase", "warm compile=compile")
    said = " ".join(ran.out.split())
    assert f"rank {job.SLOW} was late for collectives" in said
    assert f"rank {job.COLD} was cold before a collective" in said
    assert "same kernels compiled by 8 processes" in said


def test_two_batches_are_compared(tprof: Callable, tmp_path: Path) -> None:
    for name, slow in (("a", None), ("b", job.SLOW)):
        job.write(tmp_path / name, slow=slow)
        assert tprof("batch", tmp_path / name, "-o", tmp_path / f"out-{name}").code == 0
    ran = tprof("diff", tmp_path / "out-a", tmp_path / "out-b", "-f", "json")
    found = json.loads(ran.out)
    window = next(row for row in found["figures"] if row["figure"] == "window")
    assert window["change_ns"] == (job.STEPS - 1) * 300_000  # the cold rank hides the slow one once
    assert len(found["before"]) == job.RANKS
    slower = {row["trace"] for row in found["sources"] if row["figure"] == "device busy"}
    assert slower == {f"rank-{rank}.json" for rank in range(job.RANKS)}  # all wait for the slow one in a collective
    assert found["warnings"][0]["code"] == "kinds-not-compared"
    assert "another batch" in tprof("diff", tmp_path / "out-a", tmp_path / "a").err


def test_a_kernel_that_became_slower_is_named_and_equal_batches_show_nothing(
    tprof: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, work_us in (("a", 500), ("same", 500), ("b", 700)):
        monkeypatch.setattr(job, "_WORK", work_us)
        job.write(tmp_path / name, slow=None, cold=None)
        assert tprof("batch", tmp_path / name, "-o", tmp_path / f"out-{name}", "-j", 1).code == 0
    found = json.loads(tprof("diff", tmp_path / "out-a", tmp_path / "out-b", "-f", "json").out)
    assert [(row["kernel"], row["change_ns"]) for row in found["kernels"]] == [("attention", job.STEPS * 200_000)]
    assert "Nothing differs" in tprof("diff", tmp_path / "out-a", tmp_path / "out-same").out


def test_a_recording_that_only_one_batch_has_is_told(tprof: Callable, tmp_path: Path) -> None:
    paths = job.write(tmp_path / "job")
    for name, of in (("a", paths[:2]), ("b", paths[:1])):
        assert tprof("batch", *of, "-o", tmp_path / name, "-j", 1).code == 0
    assert "no recording of the same name in both batches: rank-1.json" in " ".join(
        tprof("diff", tmp_path / "a", tmp_path / "b").err.split()
    )
