"""Processes on this machine that analyse one source at a time. One that is killed costs its source, nothing else."""

from __future__ import annotations

import multiprocessing
import os
import threading
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from tprof.batch.work import Outcome, Task, analyse
from tprof.errors import FAILED
from tprof.model import spare_pandas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

LOOK_SECONDS: Final = 0.5
_SHARE: Final = 0.8  # of the memory that is there


def run(tasks: Sequence[Task], jobs: int, work: Callable[[Task], Outcome] = analyse) -> Iterator[Outcome | None]:
    """Outcomes as they come, and None at least twice a second in between; the largest source is begun first.

    Args:
        tasks: what to do.
        jobs: processes at a time.
        work: what a process does with a task.
    """
    jobs = max(1, min(jobs, len(tasks)))
    processes = _Processes(work, max(1, processors() // jobs))
    with ThreadPoolExecutor(jobs) as threads:
        try:
            pending = {threads.submit(processes.do, task) for task in sorted(tasks, key=lambda t: -t.source.size)}
            while pending:
                done, pending = wait(pending, LOOK_SECONDS, FIRST_COMPLETED)
                yield from (future.result() for future in done)
                yield None
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            processes.close()


def fitting_jobs(tasks: Sequence[Task], processors: int, available_bytes: int) -> int:
    """Most processes, no more than processors, whose sources fit into memory together whichever they are."""
    needed, fits = 0, 0
    for size in sorted((task.source.memory_bytes for task in tasks), reverse=True)[:processors]:
        needed += size
        fits += needed <= _SHARE * available_bytes
    return max(1, fits)


def processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def available_bytes() -> int:
    """Memory that is free or can be freed, within the limit of the control group; 0 where the system does not say."""
    found = [n for n in (_machine(), _group()) if n is not None]
    return min(found, default=0)


def _machine() -> int | None:
    lines = _lines(Path("/proc/meminfo"))
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), None)


def _group() -> int | None:
    limit, used = (_lines(Path("/sys/fs/cgroup") / name) for name in ("memory.max", "memory.current"))
    known = limit and used and limit[0].isdigit() and used[0].isdigit()
    return max(int(limit[0]) - int(used[0]), 0) if known else None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="ascii").splitlines()
    except OSError:
        return []


class _Processes:
    """One process per thread, replaced when it dies, so that it is known whose source killed it."""

    def __init__(self, work: Callable[[Task], Outcome], threads: int) -> None:
        self._work = work
        self._threads = threads
        self._own = threading.local()
        self._all: list[ProcessPoolExecutor] = []

    def do(self, task: Task) -> Outcome:
        """Outcome of one task, whatever happens to the process."""
        try:
            return self._pool().submit(self._work, task).result()
        except BrokenProcessPool:
            self._own.pool = None
            why = "its process was killed, most likely for want of memory; analyse it alone"
            return Outcome(task.source, f"{task.source.path}: {why}", FAILED)

    def _pool(self) -> ProcessPoolExecutor:
        pool = getattr(self._own, "pool", None)
        if pool is None:
            context = multiprocessing.get_context("spawn")
            pool = self._own.pool = ProcessPoolExecutor(1, context, initializer=begin, initargs=(self._threads,))
            self._all.append(pool)
        return pool

    def close(self) -> None:
        """End the processes."""
        for pool in self._all:
            pool.shutdown(wait=False, cancel_futures=True)


def begin(threads: int) -> None:
    """Share the processors, and end when the process that started this one is gone: a pool's would wait for ever."""
    pa.set_cpu_count(threads)
    spare_pandas()
    if parent := multiprocessing.parent_process():
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(FAILED)
