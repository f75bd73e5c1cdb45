"""Processes that analyse one source at a time. A source that kills its process costs that source, nothing else."""

from __future__ import annotations

import multiprocessing
import re
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tprof.errors import FAILED, TprofError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tprof.analyze import Result
    from tprof.facade import Trace

Row = dict[str, Any]
# Parquet file of a source's folder <- (method of the trace, table of its result)
TABLES = {
    "devices": ("summary", "devices"),
    "wall": ("summary", "wall"),
    "findings": ("summary", "findings"),
    "requests": ("requests", "requests"),
    "kernels": ("kernels", "kernels"),
    "idle": ("idle", "phases"),
    "gaps": ("idle", "gaps"),
    "cold_phases": ("cold", "phases"),
    "cold_kernels": ("cold", "kernels"),
    "candidates": ("cold", "candidates"),
    "first_uses": ("cold", "first_uses"),
    "variants": ("cold", "specializations"),
    "tunings": ("cold", "tunings"),
    "cache_misses": ("cold", "cache_misses"),
}


@dataclass(frozen=True)
class Task:
    """One source, and the folder for what is said of it."""

    source: str
    folder: str
    ranges: tuple[str, ...] = ()
    phases: tuple[str, ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What became of a source: a row of the overall table, or why there is none."""

    source: str
    row: Row | None = None
    message: str = ""
    exit_code: int = 0
    sources: list[Row] = field(default_factory=list)


def run(
    tasks: Sequence[Task], jobs: int, advance: Callable[[], None], work: Callable[[Task], Outcome] | None = None
) -> list[Outcome]:
    """Outcomes in the order of the tasks.

    Args:
        tasks: what to do.
        jobs: processes at a time.
        advance: called when a source is done.
        work: what a process does with a task.
    """
    jobs = max(1, min(jobs, len(tasks)))
    processes = _Processes(work or analyse)
    with ThreadPoolExecutor(jobs) as threads:
        try:
            futures = {threads.submit(processes.do, task): i for i, task in enumerate(tasks)}
            outcomes: dict[int, Outcome] = {}
            for future in as_completed(futures):
                outcomes[futures[future]] = future.result()
                advance()
        finally:
            threads.shutdown(wait=False, cancel_futures=True)
            processes.close()
    return [outcomes[i] for i in range(len(tasks))]


class _Processes:
    """One process per thread, replaced when it dies, so that it is known whose source killed it."""

    def __init__(self, work: Callable[[Task], Outcome]) -> None:
        self._work = work
        self._own = threading.local()
        self._all: list[ProcessPoolExecutor] = []

    def do(self, task: Task) -> Outcome:
        """Outcome of one task, whatever happens to the process."""
        try:
            return self._pool().submit(self._work, task).result()
        except BrokenProcessPool:
            self._own.pool = None
            message = f"{task.source}: its process was killed, most likely for want of memory; analyse it alone"
            return Outcome(task.source, None, message, FAILED)

    def _pool(self) -> ProcessPoolExecutor:
        pool = getattr(self._own, "pool", None)
        if pool is None:
            pool = self._own.pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"))
            self._all.append(pool)
        return pool

    def close(self) -> None:
        """End the processes."""
        for pool in self._all:
            pool.shutdown(wait=False, cancel_futures=True)


def analyse(task: Task) -> Outcome:
    """Read a source, write its tables; an error becomes part of the outcome."""
    from tprof.cli.settings import parse_phases  # noqa: PLC0415  runs in the worker
    from tprof.facade import load  # noqa: PLC0415  as above

    try:
        trace = load(task.source, phases=parse_phases(task.phases), requests=task.ranges)
        row = _write(trace, task)
    except TprofError as error:
        return Outcome(task.source, None, str(error), error.exit_code)
    except OSError as error:
        return Outcome(task.source, None, f"{task.source}: {error.strerror or error}", FAILED)
    except MemoryError:
        return Outcome(task.source, None, f"{task.source}: not enough memory", FAILED)
    return Outcome(task.source, row, sources=trace.summary().sources)


def _write(trace: Trace, task: Task) -> Row:
    from tprof.analyze import Options, Result  # noqa: PLC0415  as above
    from tprof.present import tabular  # noqa: PLC0415  as above

    folder = Path(task.folder)
    folder.mkdir(parents=True, exist_ok=True)
    asked = Options(ranges=task.ranges)
    results = {name: getattr(trace, name)(asked) for name in dict.fromkeys(method for method, _ in TABLES.values())}
    for file, (method, table) in TABLES.items():
        (folder / f"{file}.parquet").write_bytes(tabular.parquet_bytes(results[method], table))
    notes = Result("warnings", {"warnings": [n.to_dict() for n in trace.notes]}, {})
    (folder / "warnings.parquet").write_bytes(tabular.parquet_bytes(notes))
    (folder / "summary.json").write_text(tabular.json_text(results["summary"]) + "\n", encoding="utf-8")
    return _row(results["summary"])


def _row(summary: Result) -> Row:
    """The figures of one source that fit on a line; those of several devices are summed."""
    payload = summary.payload
    devices, requests = payload["devices"], payload["requests"]
    return {
        "wall_ns": payload["window"]["wall_ns"],
        "devices": len(devices),
        "events": sum(d["events"] for d in devices),
        "busy_ns": sum(d["busy_ns"] for d in devices),
        "idle_ns": sum(d["idle_ns"] for d in devices),
        "cold_ns": sum(r["cold_tax_ns"] for r in requests),
        "requests": len(requests),
        "cold_requests": sum(f["count"] for f in payload["findings"] if f["code"] == "cold-request"),
        "warnings": len(summary.notes),
    }


def slugs(paths: Sequence[Path]) -> list[str]:
    """A folder name per source: its file name made safe, numbered where several are alike."""
    taken: dict[str, int] = {}
    found = []
    for path in paths:
        base = re.sub(r"[^A-Za-z0-9._-]+", "-", path.name).strip(".-")[:80] or "source"
        number = taken[base.lower()] = taken.get(base.lower(), 0) + 1
        found.append(base if number == 1 else f"{base}-{number}")
    return found
