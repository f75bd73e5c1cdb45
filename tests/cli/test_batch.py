from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
from support.mortal import work

from tprof.cli.workers import TABLES, Outcome, Task, run, slugs

if TYPE_CHECKING:
    from collections.abc import Callable


def test_every_source_and_what_failed(tprof: Callable, small: Path, cpu_only: Path, tmp_path: Path) -> None:
    ran = tprof("batch", small, cpu_only, tmp_path / "gone.json", "-o", tmp_path / "out", "-j", 2)
    assert ran.code == 0
    assert "gone.json: does not exist" in " ".join(ran.err.split())
    overall = json.loads((tmp_path / "out" / "overall.json").read_text())
    assert [(r["source"], r["requests"], r["busy_ns"]) for r in overall["results"]] == [
        (str(small), 1, 2000),
        (str(cpu_only), 0, 0),
    ]
    failed = json.loads((tmp_path / "out" / "failed.json").read_text())["failed"]
    assert [(f["source"], f["exit_code"]) for f in failed] == [(str(tmp_path / "gone.json"), 1)]
    folder = tmp_path / "out" / "small.json"
    assert {p.stem for p in folder.glob("*.parquet")} == {*TABLES, "warnings"}
    assert pq.read_table(folder / "kernels.parquet")["total_ns"].to_pylist() == [2000]
    assert json.loads((folder / "summary.json").read_text())["schema_version"] == 1


def test_nothing_at_all(tprof: Callable, tmp_path: Path) -> None:
    ran = tprof("batch", tmp_path / "gone.json", "-o", tmp_path / "out", "-j", 1)
    assert ran.code == 1
    assert "none of 1 sources" in ran.err
    (tmp_path / "none").mkdir()
    assert tprof("batch", tmp_path / "none", "-o", tmp_path / "new").code == 2


def test_a_folder_with_something_in_it_is_kept(tprof: Callable, small: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("x")
    ran = tprof("batch", small, "-o", tmp_path)
    assert ran.code == 2
    assert "--force" in ran.err
    assert tprof("batch", small, "-o", tmp_path / "mine.txt").code == 2


def test_a_killed_worker_costs_its_own_source_only() -> None:
    tasks = [Task(name, "") for name in ("a", "kill 1", "bb", "kill 2", "ccc", "dddd")]
    done: list[None] = []
    outcomes = run(tasks, 2, lambda: done.append(None), work)
    assert len(done) == 6
    assert [o.source for o in outcomes] == [t.source for t in tasks]
    assert [o.row is None for o in outcomes] == [False, True, False, True, False, False]
    assert "was killed" in outcomes[1].message
    assert outcomes[0] == Outcome("a", {"wall_ns": 1})


def test_folder_names() -> None:
    paths = [Path(p) for p in ("a/t.json", "b/t.json", "c/T.JSON", "x/../../etc", "d/<é>.json", "e/..")]
    assert slugs(paths) == ["t.json", "t.json-2", "T.JSON-3", "etc", "json", "source"]
