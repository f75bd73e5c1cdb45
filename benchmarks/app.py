"""What the app's timeline costs on a large trace: second opening, and per zoom and filter time, bytes and memory.

    python benchmarks/app.py [TRACE] [--events N] [--write FILE]

Without TRACE a torch.profiler trace of N events is generated. Opening happens in a process of its own, as a second
start of the app would; memory is the growth of anonymous pages over what the imports take.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "apps"))

from generate import torch_trace
from methods import anonymous_bytes
from plotly.io import to_json
from tprof_app.recording import Recording

from tprof.analyze.zoom import Wanted, zoom
from tprof.present.timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

LIMIT_MS, LIMIT_BYTES, LIMIT_SECONDS, LIMIT_MEMORY = 150, 1_000_000, 1.0, 1.5
ROUNDS = 3
FILTERS = {
    "": Wanted(),
    "phases": Wanted(parts=("busy.work", "launch")),
    "at least 10 us": Wanted(min_ns=10_000),
    "kernel": Wanted(kernel="triton_*"),
    "shape": Wanted(shape="512"),
    "range": Wanted(ranges=("ProfilerStep*",)),
}


def windows(extent: tuple[int, int]) -> Iterator[tuple[str, tuple[int, int]]]:
    """The whole, and ever smaller parts of it."""
    low, length = extent[0], extent[1] - extent[0]
    for name, part in (("all", 1), ("a tenth", 10), ("1 %", 100), ("0.01 %", 10_000)):
        yield name, (low + length // 3 * (part > 1), low + length // 3 * (part > 1) + length // part)


def drawn(recording: Recording, window: tuple[int, int], wanted: Wanted) -> tuple[float, int, int]:
    """Milliseconds of processor time of one zoom, bytes that go to the browser, and intervals."""
    best, size, count = float("inf"), 0, 0
    for _ in range(ROUNDS):
        start = time.process_time()
        view = zoom(recording.trace, recording.lanes, window, wanted)
        sent = to_json(timeline(view, recording.trace, recording.extent[0]), validate=False)
        best = min(best, 1e3 * (time.process_time() - start))
        size, count = len(sent), view.intervals
    return best, size, count


def opening(path: Path) -> dict[str, Any]:
    """In a process of its own: what the frame of a page waits for, and what the lanes take after it."""
    before, start = anonymous_bytes(), time.perf_counter()
    recording = Recording((str(path),)).open()
    low, high = recording.extent
    opened = time.perf_counter() - start
    _ = recording.lanes
    arrow = sum(getattr(recording.trace, name).nbytes for name in ("host", "device"))
    laid = time.perf_counter() - start - opened
    return {"opened": opened, "laid": laid, "grown": (anonymous_bytes() - before) / arrow, "wall": (high - low) / 1e9}


def lines(path: Path) -> Iterator[str]:
    """The page."""
    Recording((str(path),)).open()  # and kept in the cache
    command = [sys.executable, __file__, str(path), "--opening"]
    told = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(ROUNDS)]  # noqa: S603  this file
    found = min((json.loads(said.splitlines()[-1]) for said in told), key=lambda row: row["opened"])
    recording = Recording((str(path),)).open()
    rows = recording.trace.host.num_rows + recording.trace.device.num_rows
    yield f"\n## App: timeline of {rows:,} events, {path.stat().st_size / 1e6:,.0f} MB\n"
    yield (
        f"Second opening {found['opened']:.2f} s (goal {LIMIT_SECONDS:g}); lanes laid out once in {found['laid']:.1f} "
        f"s; memory grew by {found['grown']:.2f} of the trace's Arrow size (goal {LIMIT_MEMORY:g}).\n"
    )
    size = f"to the browser, kB (goal {LIMIT_BYTES // 1000:,})"
    yield f"| window | filter | intervals | server, ms (goal {LIMIT_MS}) | {size} |"
    yield "|---|---|---|---|---|"
    for name, window in windows(recording.extent):
        for filtered, wanted in FILTERS.items():
            took, size, count = drawn(recording, window, wanted)
            yield f"| {name} | {filtered} | {count:,} | {took:.0f} | {size / 1e3:,.0f} |"


def main() -> None:
    """Make the trace, measure, write."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace", type=Path, nargs="?")
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--write", type=Path, help="append to this file")
    parser.add_argument("--opening", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.opening:
        print(json.dumps(opening(options.trace)))
        return
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("TPROF_CACHE_DIR", folder)
        path = options.trace or Path(folder) / "trace.json"
        if not options.trace:
            torch_trace(path, options.events)
            time.sleep(3)  # what has just changed is not kept in the cache
        page = "\n".join(lines(path)) + "\n"
    print(page)
    if options.write:
        with options.write.open("a") as file:
            file.write(page)


if __name__ == "__main__":
    main()
