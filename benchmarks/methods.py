"""What is measured: tprof, and what people use instead, each as `prepare() -> run(path) -> value to compare`.

`prepare` does the imports. A method is run in a process of its own by `reading.py`:

    python benchmarks/methods.py METHOD PATH
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    Run = Callable[[str], int]

DEVICE_WORK = ("kernel", "gpu_memcpy", "gpu_memset")
ARGUMENTS = ("correlation", "External id", "device", "stream", "grid", "block")
TABLES = {
    "CUPTI_ACTIVITY_KIND_KERNEL": "start, end, deviceId, streamId, correlationId, globalPid, demangledName, "
    "registersPerThread, gridX, gridY, gridZ, blockX, blockY, blockZ",
    "CUPTI_ACTIVITY_KIND_RUNTIME": "start, end, globalTid, correlationId, nameId, returnValue",
    "NVTX_EVENTS": "start, end, eventType, globalTid, textId, domainId",
}


def anonymous_bytes() -> int:
    """Anonymous resident memory of this process."""
    line = next(x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("RssAnon"))
    return int(line.split()[1]) * 1024


class PeakMemory:
    """Peak growth of anonymous memory while the context is open, sampled every 2 ms; `processor`: what that took, s."""

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
        self.processor = time.thread_time()

    def __exit__(self, *_: object) -> None:
        """Stop sampling."""
        self._done.set()
        self._thread.join()
        self.growth = max(self.peak, anonymous_bytes()) - self.before


# ---- torch.profiler: each returns the device's busy ns


def json_pandas() -> Run:
    """What people write by hand: json, a DataFrame, its arguments as columns; busy and idle time, time by kernel."""
    import pandas as pd  # noqa: PLC0415  imported before the clock starts

    def run(path: str) -> int:
        with gzip.open(path) if path.endswith(".gz") else open(path, "rb") as file:  # noqa: PTH123  as people do
            events = pd.DataFrame(json.load(file)["traceEvents"])
        for name in ARGUMENTS:
            events[name] = events["args"].apply(lambda a, key=name: a.get(key) if isinstance(a, dict) else None)
        device = events[events.cat.isin(DEVICE_WORK)].sort_values("ts")
        device.groupby("name")["dur"].agg(["count", "sum", "min", "median", "max"]).sort_values("sum")
        calls = events[events.cat.isin(["cuda_runtime", "cuda_driver"])]
        device.merge(calls, on="correlation", suffixes=("", "_call"))
        end = (device.ts + device.dur).cummax()
        idle = (device.ts - end.shift()).clip(lower=0).sum()
        return round((end.max() - device.ts.min() - idle) * 1000)

    return run


def hta() -> Run:
    """HolisticTraceAnalysis: parsing, idle time and temporal breakdown."""
    from hta.trace_analysis import TraceAnalysis  # noqa: PLC0415  as above

    def run(path: str) -> int:
        found = TraceAnalysis(trace_files={0: path}, trace_dir=str(Path(path).parent))
        found.get_idle_time_breakdown(ranks=[0], visualize=False)
        row = found.get_temporal_breakdown(visualize=False).iloc[0]
        return round((row["kernel_time(us)"] - row["idle_time(us)"]) * 1000)

    return run


def machine_code() -> None:
    """Load all machine code, and compile what never was."""
    from tprof import model  # noqa: PLC0415  as above
    from tprof.machine import can_compile, stacks  # noqa: PLC0415  as above
    from tprof.read import sqlite_pages, torch_scan_columns  # noqa: PLC0415  as above

    if can_compile():
        for module in (stacks, model, sqlite_pages, torch_scan_columns):
            for native in [n for n in vars(module).values() if hasattr(n, "choose") and hasattr(n, "load_from")]:
                native.choose(1 << 40)


def summary(**options: Any) -> Run:
    """Read, align and summarize."""
    import tprof  # noqa: PLC0415  as above

    machine_code()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as empty:  # what is imported late
        empty.write('{"traceEvents": []}')
        empty.flush()
        tprof.load(empty.name, **options).summary()
    return lambda path: sum(d["busy_ns"] for d in tprof.load(path, **options).summary().to_dict()["devices"])


def summary_decoder() -> Run:
    """The same without the scanner of the extra `fast`."""
    os.environ["TPROF_SCANNER"] = "off"
    return summary()


def low_memory() -> Run:
    """The same with `--low-memory`."""
    return summary(low_memory=True)


def opening() -> Run:
    """Only opening; all imports are part of it."""

    def run(path: str) -> int:
        import tprof  # noqa: PLC0415  measured

        return tprof.load(path).device.num_rows

    return run


# ---- Nsight Systems: each returns the number of kernels that met their launch


def sqlite_pandas() -> Run:
    """sqlite3 and pandas: kernels with their launches, and the range that each launch lies in."""
    import sqlite3  # noqa: PLC0415  as above

    import pandas as pd  # noqa: PLC0415  as above

    def run(path: str) -> int:
        database = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        kernels, calls, ranges = (pd.read_sql(f"SELECT {c} FROM {t}", database) for t, c in TABLES.items())
        kernels["pid"], calls["pid"] = kernels.globalPid // (1 << 24), calls.globalTid // (1 << 24)
        joined = kernels.merge(calls, on=["pid", "correlationId"], suffixes=("", "_call")).sort_values("start_call")
        ranges = ranges.sort_values("start").rename(columns={"start": "range_start", "end": "range_end"})
        pd.merge_asof(joined, ranges, left_on="start_call", right_on="range_start", by="globalTid")
        return len(joined)

    return run


def joined() -> Run:
    """All tables, and each kernel's launch and each launch's range."""
    import pandas as pd  # noqa: F401, PLC0415  which Arrow imports late

    from tprof.align.links import find_launches  # noqa: PLC0415  as above
    from tprof.align.ranges import add_parents  # noqa: PLC0415  as above
    from tprof.read import nsight, read_source  # noqa: F401, PLC0415  as above

    machine_code()

    def run(path: str) -> int:
        trace = read_source(path)[0]
        launch = find_launches(trace)
        add_parents(trace)
        return int((launch >= 0).sum())

    return run


METHODS: dict[str, Callable[[], Run]] = {
    f.__name__: f  # type: ignore[attr-defined]
    for f in (json_pandas, hta, summary, summary_decoder, low_memory, opening, sqlite_pandas, joined)
}

if __name__ == "__main__":
    run_it = METHODS[sys.argv[1]]()
    with PeakMemory() as memory:
        start, processor = time.perf_counter(), time.process_time()
        value = run_it(sys.argv[2])
        seconds, processor = time.perf_counter() - start, time.process_time() - processor
    print(json.dumps({"clock": seconds, "cpu": processor - memory.processor, "bytes": memory.growth, "value": value}))
