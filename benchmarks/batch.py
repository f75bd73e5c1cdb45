"""Two processes against one, and memory against the number of sources, of `tprof batch`.

    python benchmarks/batch.py [--sources N] [--events N] [--rounds N]

Goals: two processes at least 1.6 times as fast (median of the rounds) for at most 1.1 times the processor's time;
memory of 200 sources as of 20. A round is a run of one process beside one of two, the one or the other first in turn,
so that whatever else the machine does falls on both; each ratio is of one round.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from generate import nsight_export


class Run(NamedTuple):
    """What one batch cost."""

    wall_s: float
    cpu_s: float
    peak_bytes: int  # of the largest process of this and all runs before


def main() -> None:
    """Measure and print."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    parser = argparse.ArgumentParser()
    parser.add_argument("--sources", type=int, default=16)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        # the system tells the most memory of any child so far: the small ones come first
        fixed = _run(_sources(Path(folder) / "one", 1, 2_000), out, 1)
        for count in (20, 200):
            peak = _run(_sources(Path(folder) / f"small-{count}", count, 2_000), out, 1).peak_bytes
            print(f"{count} small exports: {peak / 1e6:.0f} MB in the largest process")
        sources = _sources(Path(folder) / "large", asked.sources, asked.events)
        _run(sources, out, 2)  # the files are in memory from here on
        orders = [(1, 2), (2, 1)]
        rounds = [{jobs: _run(sources, out, jobs) for jobs in orders[i % 2]} for i in range(asked.rounds)]
    print(f"{asked.sources} exports of {asked.events:,} rows, {os.cpu_count()} processors, {asked.rounds} rounds:")
    for jobs in (1, 2):
        runs = [pair[jobs] for pair in rounds]
        wall, cpu = (statistics.median(values) for values in zip(*((r.wall_s, r.cpu_s) for r in runs), strict=True))
        print(f"{jobs} at a time: {wall:.1f} s, {cpu:.1f} s of the processor (medians)")
    _told("two against one", [pair[1].wall_s / pair[2].wall_s for pair in rounds], "times as fast (goal 1.6)")
    _told("for", [pair[2].cpu_s / pair[1].cpu_s for pair in rounds], "times the processor's time (goal 1.1)")
    _told("at one time", [pair[2].cpu_s / pair[2].wall_s for pair in rounds], "processors busy with two")
    print(
        f"one source of 2,000 rows, which is start, imports and report: {fixed.wall_s:.1f} s, {fixed.cpu_s:.1f} s of it"
    )


def _told(what: str, ratios: list[float], said: str) -> None:
    print(f"{what} {statistics.median(ratios):.2f} {said}; rounds from {min(ratios):.2f} to {max(ratios):.2f}")


def _sources(folder: Path, count: int, events: int) -> Path:
    folder.mkdir()
    for i in range(count):
        nsight_export(folder / f"{i}.sqlite", events)
    return folder


def _run(sources: Path, out: Path, jobs: int) -> Run:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "tprof", "batch", str(sources), "-o", str(out), "-j", str(jobs), "--force"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603  our own command
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Run(took, spent, after.ru_maxrss * 1024)


if __name__ == "__main__":
    main()
