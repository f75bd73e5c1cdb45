"""Times tprof from a gzipped trace to its summary against json + pandas, and measures the memory of each.

    python benchmarks/cold_start.py [TRACE.json.gz ...]

Without a trace: the full recording under `TPROF_TRACES` (default `../shared/traces`) if it is there, else the sample.
Every measurement runs in a process of its own, after its imports, and the methods take turns: other work on the machine
hits all of them. Times are of the clock and, steadier, of the processor; memory is the peak growth of anonymous pages.
tprof is measured with its decoder, and with its scanner where numba is installed (the extra `fast`).
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
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

ROOT = Path(__file__).resolve().parents[1]
ROUNDS = 5
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


def with_scanner() -> Callable[[str], int]:
    """As `with_tprof`, with the code of the scanner loaded; it is compiled here if it never was."""
    from tprof.read.torch_scan_columns import choose  # noqa: PLC0415  imported before the clock starts

    choose(0)
    return with_tprof()


PEER = "json + pandas"
METHODS = {PEER: (with_pandas, "off"), "tprof, decoder": (with_tprof, "off")}
if find_spec("numba"):
    METHODS["tprof, scanner"] = (with_scanner, "on")


def measure(method: str, path: str) -> None:
    """Print one measurement as JSON; runs in a process of its own."""
    prepare, os.environ["TPROF_SCANNER"] = METHODS[method]
    run = prepare()
    with PeakMemory() as memory:
        start, processor = time.perf_counter(), time.process_time()
        busy = run(path)
        seconds, processor = time.perf_counter() - start, time.process_time() - processor
    print(json.dumps({"seconds": seconds, "cpu": processor, "bytes": memory.growth, "busy_ns": busy}))


def best(path: Path) -> dict[str, dict[str, float]]:
    """Per method, the least of each figure over some rounds, in which the methods take turns."""
    results: dict[str, list[dict[str, float]]] = {method: [] for method in METHODS}
    for _ in range(ROUNDS):
        for method, found in results.items():
            command = [sys.executable, __file__, "--measure", method, str(path)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
            found.append(json.loads(done.stdout))
    return {method: {key: min(r[key] for r in found) for key in found[0]} for method, found in results.items()}


def default_trace() -> Path:
    """The full recording where it is, else the sample."""
    folder = Path(os.environ.get("TPROF_TRACES") or ROOT / "../shared/traces")
    found = sorted(folder.glob("h200-cold-start/*.json.gz"))
    return found[0] if found else ROOT / "sample_traces" / "h200-torch.json.gz"


def report(path: Path) -> None:
    """Print the table of one trace."""
    with gzip.open(path) as file:
        inflated = sum(map(len, iter(lambda: file.read(1 << 20), b"")))
    print(f"{path.name}: {inflated / 1e6:.1f} MB inflated, least of {ROUNDS} rounds")
    results = best(path)
    for method, result in results.items():
        clock, processor = (result[key] / results[PEER][key] for key in ("seconds", "cpu"))
        print(
            f"  {method:14}  clock {result['seconds']:5.2f} s = {clock:4.2f} x {PEER}"
            f"  processor {result['cpu']:5.2f} s = {processor:4.2f} x"
            f"  memory {result['bytes'] / 1e6:6.1f} MB = {result['bytes'] / inflated:5.2f} x the inflated size"
            f"  busy {result['busy_ns']:,} ns"
        )
    if "tprof, scanner" not in METHODS:
        print("  the scanner was not measured: it needs numba (pip install 'triton-tprof[fast]')")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:4])
    else:
        for trace in map(Path, sys.argv[1:] or [str(default_trace())]):
            report(trace)
