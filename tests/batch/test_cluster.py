from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest
from batch.test_killed import content
from support import job
from support.until import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from batch.conftest import Whole

pytest.importorskip("distributed")


def _batch(sources: Path, out: Path, *more: object) -> list[str]:
    return [sys.executable, "-m", "tprof", "batch", str(sources), "-o", str(out), "-f", "json", *map(str, more)]


class Cluster:
    """A scheduler and worker processes on this machine."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.folder = folder
        self.scheduler = self._start("scheduler", "dask_scheduler", "--port", "0", "--host", "127.0.0.1")
        self.workers: list[subprocess.Popen[bytes]] = []
        until(self.file.is_file)

    def worker(self, *more: str) -> subprocess.Popen[bytes]:
        found = self._start(
            f"worker-{len(self.workers)}", "dask_worker", "--nthreads", "1", "--no-nanny", "--local-directory",
            str(self.folder), *more,
        )  # fmt: skip
        self.workers.append(found)
        return found

    def end(self) -> None:
        for process in (self.scheduler, *self.workers):
            process.kill()
            process.wait()

    def _start(self, name: str, module: str, *more: str) -> subprocess.Popen[bytes]:
        run = [sys.executable, "-m", f"distributed.cli.{module}", "--scheduler-file", str(self.file), "--no-dashboard"]
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen([*run, *more], stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"})


@contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    folder.mkdir(exist_ok=True)
    with ExitStack() as stack:
        found = Cluster(folder)
        stack.callback(found.end)
        for _ in range(workers):
            found.worker()
        yield found


def test_one_process_several_and_a_cluster_that_loses_a_worker_give_the_same(tmp_path: Path) -> None:
    job.write(tmp_path / "job")
    for jobs in (1, 2):
        subprocess.run(
            _batch(tmp_path / "job", tmp_path / f"local-{jobs}", "-j", jobs), check=True, capture_output=True
        )
    with cluster(tmp_path / "dask", 2) as at:
        with subprocess.Popen(
            _batch(tmp_path / "job", tmp_path / "cluster", "--scheduler-file", at.file), stdout=subprocess.DEVNULL
        ) as run:
            until(lambda: any((tmp_path / "cluster").glob("finished/*")))
            at.workers[0].kill()
        assert run.returncode == 0
        whole = content(tmp_path / "local-1")
        assert content(tmp_path / "local-2") == content(tmp_path / "cluster") == whole

        at.worker("--preload", "import sys; sys.modules['tprof'] = None")  # a worker without the package
        until(lambda: b"Registered to" in (tmp_path / "dask" / "worker-2.log").read_bytes())
        lacking = subprocess.run(
            _batch(tmp_path / "job", tmp_path / "lacking", "--scheduler-file", at.file),
            capture_output=True,
            text=True,
            check=False,
        )
        assert lacking.returncode == 1
        assert "has no tprof" in lacking.stderr
        assert lacking.stderr.count("\n") == 1


def test_on_a_cluster_every_recording_gives_the_same_byte_for_byte(whole: Whole, tmp_path: Path) -> None:
    with cluster(tmp_path / "dask", 2) as at:
        first, *others = whole.sources.values()
        run = _batch(first, tmp_path / "out", "--scheduler-file", at.file, *others)
        subprocess.run(run, check=True, capture_output=True)
    assert content(tmp_path / "out") == content(whole.folder.path)


def test_a_scheduler_that_goes_away_stops_the_run_which_then_goes_on(tmp_path: Path) -> None:
    for part in "abcd":  # enough that it cannot be over before the scheduler is killed
        job.write(tmp_path / "job" / part)
    run = _batch(tmp_path / "job", tmp_path / "out")
    with cluster(tmp_path / "dask", 1) as at:
        with subprocess.Popen(
            [*run, "--scheduler-file", str(at.file)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as lost:
            until(lambda: any((tmp_path / "out").glob("finished/*")))
            at.scheduler.kill()
            _, said = lost.communicate()
        assert lost.returncode == 1
        assert b"went away; run the same command again" in said
    subprocess.run([*run, "-j", "1"], check=True, capture_output=True)
    subprocess.run(_batch(tmp_path / "job", tmp_path / "whole", "-j", "1"), check=True, capture_output=True)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_no_scheduler_at_all(tmp_path: Path) -> None:
    job.write(tmp_path / "job")
    done = subprocess.run(
        _batch(tmp_path / "job", tmp_path / "out", "--scheduler", "tcp://127.0.0.1:1"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, "no scheduler answers" in done.stderr) == (1, True)
