"""`tprof.warmup`: before "ready", compile and load what a plan names, and give the autotuners their winners.

Compiles run in threads: Triton's passes, LLVM and ptxas hold no interpreter lock. Processes would have to be forked
from one that has initialized CUDA, or to import the program's modules anew: neither is safe in a server.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tprof.errors import TprofError
from tprof.prepare import libraries, plan_file
from tprof.prepare.jobs import Job, find_jobs
from tprof.prepare.report import Item, Report
from tprof.record import annotate, guard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from tprof.prepare.plan_file import Call, Plan

    Progress = Callable[[int, int, Item], None]

MOST_THREADS: Final = 16
OVER: Final = "the time that the warm-up may take was over; raise budget_s, or plan less with --max-seconds"


def warmup(
    plan: Plan | str | Path,
    call: Callable[[Call], object] | None = None,
    *,
    parallel: int | None = None,
    budget_s: float | None = None,
    progress: Progress | None = None,
    kernels: Iterable[Any] = (),
) -> Report:
    """Prepare what a plan names; nothing that goes wrong raises: it is an item of the report, with what to do.

    Call it on the device that will serve, after the program has imported its kernels and set its configuration, and
    before `tprof.ready()`. Kernels are compiled from the program's own source: a plan only says which.

    Args:
        plan: of `tprof plan`: a file, or what `plan_file.load` gave.
        call: runs the program once for a `Call` of the plan (a bucket with the sizes of its most frequent shape, or
            the name of a request): compiled models must be traced by running them.
        parallel: threads that compile; default: the processors of this process, at most 16.
        budget_s: what has not begun after so many seconds is skipped.
        progress: called with (done, in all, the item that ended).
        kernels: jitted functions and autotuners that the garbage collector cannot see (after `gc.freeze()`).
    """
    begun = time.perf_counter_ns()
    with annotate(plan_file.RANGE):
        items = _Warmup(budget_s, parallel, progress).all(plan, call, kernels)
    report = Report(items, time.perf_counter_ns() - begun)
    for item in report.of("skipped") + report.of("failed"):
        guard.log.warning("tprof: warm-up: %s %s: %s: %s", item.kind, item.name, item.outcome, item.why)
    guard.log.info("tprof: warm-up: %s", report)
    return report


class _Warmup:
    def __init__(self, budget_s: float | None, parallel: int | None, progress: Progress | None) -> None:
        self._end = time.monotonic() + (float("inf") if budget_s is None else budget_s)
        self._threads = parallel or min(len(os.sched_getaffinity(0)), MOST_THREADS)
        self._progress, self._done, self._all = progress, 0, 0

    def all(self, plan: Plan | str | Path, call: Any, kernels: Iterable[Any]) -> tuple[Item, ...]:
        items: list[Item] = []
        try:
            items.extend(self._run(plan, call, kernels))  # which keeps what it has where it ends early
        except guard.FAILURES as error:
            items.append(Item("plan", "warm-up", "failed", 0, f"{type(error).__name__}: {error}"))
        return tuple(items)

    def _run(self, plan: Plan | str | Path, call: Any, kernels: Iterable[Any]) -> Iterator[Item]:
        try:
            known = plan if isinstance(plan, plan_file.Plan) else plan_file.load(plan)
        except TprofError as error:
            yield self._ended(Item("plan", str(plan), "failed", 0, str(error)))
            return
        yield from map(self._ended, self._prepared(known, call, kernels))

    def _prepared(self, known: Plan, call: Any, kernels: Iterable[Any]) -> Iterator[Item]:
        """Kernels in threads, and meanwhile in this one what torch.compile needs; then the calls, which need both."""
        calls, gpu = known.calls if call is not None else [], libraries.has_gpu()
        pool = ThreadPoolExecutor(self._threads, "tprof-warmup")
        try:
            if known.kernels:
                pool.submit(libraries.triton)
            if gpu:  # first: a kernel can only be loaded where the device has a context
                yield self._attempt("library", "cuBLAS", libraries.cublas)
            jobs, problems = find_jobs(known, kernels)
            device, compiler = libraries.device(), bool(gpu and calls and known.graphs)
            work = {pool.submit(self._attempt, "kernel", job.name, partial(job.on, device)): job for job in jobs}
            self._all = self._done + len(problems) + compiler + len(jobs) + len(calls)
            yield from problems
            if compiler:
                yield self._attempt("library", "torch.compile", libraries.inductor)
            yield from (self._loaded(work[future], future.result()) for future in as_completed(work))
        finally:
            pool.shutdown(cancel_futures=True)  # Ctrl-C waits for what has begun, and for no more
        yield from (self._attempt("call", c.name, partial(call, c)) for c in calls)
        if known.graphs and call is None:
            why = f"{len(known.graphs)} graphs were compiled when recorded, and only running them does: pass `call=`"
            yield Item("call", "torch.compile", "skipped", 0, why)

    def _ended(self, item: Item) -> Item:
        self._done += 1
        if self._progress is not None:
            guard.call("progress", self._progress, self._done, max(self._all, self._done), item)
        return item

    def _loaded(self, job: Job, item: Item) -> Item:
        """Find a kernel that a thread loaded as its first launch will; or else load it."""
        if item.outcome != "done":
            return item
        found: list[str] = []
        load = self._attempt("kernel", job.name, lambda: found.append(job.load()))
        return Item("kernel", job.name, load.outcome, item.wall_ns + load.wall_ns, load.why or "".join(found))

    def _attempt(self, kind: Any, name: str, work: Callable[[], object]) -> Item:
        if time.monotonic() > self._end:
            return Item(kind, name, "skipped", 0, OVER)
        begun = time.perf_counter_ns()
        try:
            work()
        except guard.FAILURES as error:  # of a compiler, a driver, a disk or the program: the service starts without
            first = next(iter(str(error).strip().splitlines()), "")
            return Item(kind, name, "failed", time.perf_counter_ns() - begun, f"{type(error).__name__}: {first[:300]}")
        return Item(kind, name, "done", time.perf_counter_ns() - begun)
