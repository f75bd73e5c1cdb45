"""Two processes against one, and memory against the number of sources, of `tprof batch`.

    python benchmarks/batch.py [--sources N] [--events N] [--rounds N]

Goals: two processes at least 1.6 times as fast (median of the rounds) for at most 1.1 times the processor's time;
memory of 200 sources as of 20.
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

from generate import nsight_export


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sources", type=int, default=16)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # the system tells the most memory of any child so far: the small ones come first
        for count in (20, 200):
            _, _, peak = _run(_sources(Path(folder) / f"small-{count}", count, 2_000), Path(folder) / "out", 1)
            print(f"{count} small exports: {peak / 1e6:.0f} MB in the largest process")
        sources = _sources(Path(folder) / "large", asked.sources, asked.events)
        found = {jobs: [_run(sources, Path(folder) / "out", jobs) for _ in range(asked.rounds)] for jobs in (1, 2)}
        wall, spent = ({jobs: statistics.median(r[i] for r in rs) for jobs, rs in found.items()} for i in (0, 1))
        print(
            f"{asked.sources} exports of {asked.events:,} rows, {os.cpu_count()} processors, median of {asked.rounds}:"
        )
        print(f"one process {wall[1]:.1f} s, two {wall[2]:.1f} s: {wall[1] / wall[2]:.2f} times as fast (goal 1.6), ")
        print(f"for {spent[2] / spent[1]:.2f} times the processor's time (goal 1.1)")


def _sources(folder: Path, count: int, events: int) -> Path:
    folder.mkdir()
    for i in range(count):
        nsight_export(folder / f"{i}.sqlite", events)
    return folder


def _run(sources: Path, out: Path, jobs: int) -> tuple[float, float, int]:
    """Seconds, seconds of the processor, and the most memory of one process so far."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "tprof", "batch", str(sources), "-o", str(out), "-j", str(jobs), "--force"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603  our own command
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, spent, after.ru_maxrss * 1024


if __name__ == "__main__":
    main()
