from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from support.mortal import work
from support.until import until

from tprof.analyze import Options
from tprof.batch.local import available_bytes, fitting_jobs, run
from tprof.batch.paths import Source, find
from tprof.batch.work import Outcome, Task

HERE = str(Path(__file__).parents[1])
PARENT = """
import sys
from batch.test_local import _task
from support.mortal import slow
from tprof.batch.local import run
if __name__ == "__main__":
    list(run([_task(sys.argv[1])], 1, slow))
"""


def _task(name: str, size: int = 1) -> Task:
    return Task(Source(name, name, size, (name, size, 0)), "", Options(), {})


def test_a_killed_worker_costs_its_own_source_only() -> None:
    tasks = [_task(name) for name in ("a", "kill 1", "bb", "kill 2", "ccc", "dddd")]
    found = {o.source.path: o for o in run(tasks, 2, work) if o}
    assert {name for name, o in found.items() if o.message} == {"kill 1", "kill 2"}
    assert "was killed" in found["kill 1"].message
    assert found["a"] == Outcome(tasks[0].source)
    assert len(found) == 6


def test_workers_end_with_the_one_that_started_them(tmp_path: Path) -> None:
    said = tmp_path / "pid"
    with subprocess.Popen([sys.executable, "-c", PARENT, str(said)], env={**os.environ, "PYTHONPATH": HERE}) as parent:
        until(said.is_file)
        parent.kill()
    worker = Path("/proc", said.read_text())
    until(lambda: not worker.exists())


def test_jobs_fit_into_memory_whichever_sources_meet() -> None:
    tasks = [_task("a.sqlite", 1 << 30), _task("b.sqlite", 1 << 30), _task("c.json", 1 << 20)]
    assert fitting_jobs(tasks, 8, 64 << 30) == 3
    assert fitting_jobs(tasks, 2, 64 << 30) == 2
    assert fitting_jobs(tasks, 8, 10 << 30) == 1  # two of 6 GB do not fit
    assert fitting_jobs(tasks, 8, 1 << 20) == 1
    assert available_bytes() > 1 << 20


def test_names_do_not_depend_on_other_sources(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "<é> t.json").write_text('{"traceEvents": []}')
    both = find([str(tmp_path)])
    assert len({s.slug for s in both}) == 2
    assert find([str(tmp_path / "b")])[0] in both
    assert both[0].slug.startswith("t.json-")
