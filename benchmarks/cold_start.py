"""Times tprof from a gzipped trace to its summary against json + pandas, and measures the memory of each.

    python benchmarks/cold_start.py [TRACE.json.gz ...]

Without a trace: the full recording under `TPROF_TRACES` (default `../shared/traces`) if it is there, else the sample.
Every measurement runs in a process of its own, after its imports; memory is the peak growth of anonymous pages.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 3
DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")


def anonymous_bytes() -> int:
    """Anonymous resident memory of this process."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


class PeakMemory:
    """Peak growth of anonymous memory while the context is open, sampled every 2 ms."""

    def __enter__(self) -> Self:
        """Start sampling."""
        self.before = self.peak = anonymous_bytes()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample)
        self._thread.start()
        return self

    def _sample(self) -> None:
        while not self._done.wait(0.002):
            self.peak = max(self.peak, anonymous_bytes())

    def __exit__(self, *_: object) -> None:
        """Stop sampling."""
        self._done.set()
        self._thread.join()
        self.growth = max(self.peak, anonymous_bytes()) - self.before


def with_pandas() -> Callable[[str], int]:
    """Parse with json, then sum busy and idle time with pandas: what people write by hand. Returns busy ns."""
    import pandas as pd  # noqa: PLC0415  imported before the clock starts

    def run(path: str) -> int:
        with gzip.open(path) as file:
            frame = pd.DataFrame(json.load(file)["traceEvents"])
        device = frame[frame.cat.isin(DEVICE_WORK)].sort_values("ts")
        end = (device.ts + device.dur).cummax()
        idle = (device.ts - end.shift()).clip(lower=0).sum()
        return round((end.max() - device.ts.min() - idle) * 1000)

    return run


def with_tprof() -> Callable[[str], int]:
    """Read, align and summarize. Returns busy ns."""
    import tprof  # noqa: PLC0415  imported before the clock starts

    with tempfile.NamedTemporaryFile(
        "w", suffix=".json"
    ) as empty:  # tprof imports lazily: reading imports what it needs
        empty.write('{"traceEvents": []}')
        empty.flush()
        tprof.load(empty.name).summary()
    return lambda path: sum(d["busy_ns"] for d in tprof.load(path).summary().to_dict()["devices"])


METHODS = {"json + pandas": with_pandas, "tprof": with_tprof}


def measure(method: str, path: str) -> None:
    """Print one measurement as JSON; runs in a process of its own."""
    run = METHODS[method]()
    with PeakMemory() as memory:
        start = time.perf_counter()
        busy = run(path)
        seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "bytes": memory.growth, "busy_ns": busy}))


def best(method: str, path: Path) -> dict[str, float]:
    """The fastest of some rounds."""
    command = [sys.executable, __file__, "--measure", method, str(path)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(ROUNDS)]  # noqa: S603
    return min((json.loads(run.stdout) for run in runs), key=lambda result: result["seconds"])


def default_trace() -> Path:
    """The full recording where it is, else the sample."""
    folder = Path(os.environ.get("TPROF_TRACES") or ROOT / "../shared/traces")
    found = sorted(folder.glob("h200-cold-start/*.json.gz"))
    return found[0] if found else ROOT / "sample_traces" / "h200-torch.json.gz"


def report(path: Path) -> None:
    """Print the table of one trace."""
    with gzip.open(path) as file:
        inflated = sum(map(len, iter(lambda: file.read(1 << 20), b"")))
    print(f"{path.name}: {inflated / 1e6:.1f} MB inflated, best of {ROUNDS}")
    results = {method: best(method, path) for method in METHODS}
    slow = results["json + pandas"]["seconds"]
    for method, result in results.items():
        print(
            f"  {method:14} {result['seconds']:7.2f} s  {result['seconds'] / slow:5.2f} x the time of json + pandas"
            f"  {result['bytes'] / 1e6:7.1f} MB = {result['bytes'] / inflated:5.2f} x the inflated size"
            f"  busy {result['busy_ns']:,} ns"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:4])
    else:
        for trace in map(Path, sys.argv[1:] or [str(default_trace())]):
            report(trace)
