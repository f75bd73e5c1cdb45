"""What an Nsight export says of itself: versions, clock, machine, processes and threads.

Environment variables, command lines and users of the profiled machine are in these files too; none is read.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tprof import model
from tprof.read import nsight_schema as ns
from tprof.read.nsight_rows import TID_MASK, Reading, numbers, pid, pids

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

# Of the export's own settings and of the machine: what helps to judge a trace and names nobody.
EXPORT_KEYS = {
    "EXPORT_PRODUCT_NAME": "product",
    "EXPORT_PRODUCT_VERSION": "version",
    "EXPORT_SCHEMA_VERSION": "schema",
    "EXPORT_TIME_UTC": "exported_utc",
    "EXPORT_PARAM_TIME_NORMALIZE": "time_normalize",
    "EXPORT_PARAM_TIME_SHIFT": "time_shift",
}
SYSTEM_KEYS = {
    "CpuCores": "cpu_cores",
    "CudaDriverVersion": "cuda_driver",
    "KernelVersion": "kernel",
    "OsName": "os",
}


def producer(reading: Reading) -> dict[str, object]:
    """Product, version, schema, machine and GPUs; what the export does not tell is absent."""
    pairs = {**_pairs(reading, *ns.EXPORT_META), **_pairs(reading, ns.SYSTEM)}
    about: dict[str, object] = {word: pairs[key] for key, word in (EXPORT_KEYS | SYSTEM_KEYS).items() if pairs.get(key)}
    if duration := _scalar(reading, ns.DETAILS, "duration"):
        about["duration_ns"] = duration
    if gpus := _gpus(reading):
        about["gpus"] = gpus
    return about


def check_schema(reading: Reading) -> None:
    """Warn of a schema that is newer than any that was checked, or not told at all."""
    schema = _pairs(reading, *ns.EXPORT_META).get("EXPORT_SCHEMA_VERSION", "")
    version = tuple(int(n) for n in re.findall(r"\d+", schema)[:2])
    if version > ns.NEWEST_SCHEMA:
        newest = ".".join(map(str, ns.NEWEST_SCHEMA))
        reading.note("schema-newer", f"schema {schema} is newer than {newest}, the newest that was checked; "
                     "columns that changed their meaning would go unnoticed")  # fmt: skip


def epoch(reading: Reading) -> int | None:
    """UTC time of the export's zero, ns; None where it is not told."""
    pairs = _pairs(reading, *ns.EXPORT_META)
    start = _scalar(reading, ns.SESSION, "utcEpochNs")
    if pairs.get("EXPORT_PARAM_TIME_NORMALIZE") == "true":  # every time is UTC already
        start = 0
    shift = pairs.get("EXPORT_PARAM_TIME_SHIFT", "")
    zero = None if start is None else start - (int(shift) if re.fullmatch(r"-?\d+", shift) else 0)
    return zero if zero is not None and abs(zero) < 2**63 else None


def host_name(reading: Reading) -> str:
    """Name of the profiled machine; empty where it is not told."""
    return _pairs(reading, ns.SYSTEM).get("Hostname", "")


def thread_names(reading: Reading) -> dict[int, str]:
    """Names by globalTid; of every thread of the machine, traced or not."""
    data = reading.db.fetch(ns.THREAD_NAMES, ("globalTid", "nameId"))
    names = reading.strings.lookup(data["nameId"])
    return {g: names.values[c] for g, c in zip(numbers(data, "globalTid").tolist(), names.codes, strict=True) if c >= 0}


def processes(reading: Reading, seen: Sequence[int], machine: str, threads: Mapping[int, str]) -> pa.Table:
    """The table `processes` for the process ids that have events; one without a name takes its main thread's.

    Args:
        reading: the export.
        seen: process ids.
        machine: name of the host.
        threads: names of threads by globalTid.
    """
    data = reading.db.fetch(ns.PROCESSES, ("globalPid",), ("name",))
    names = {pid(g): name for g, name in threads.items() if pid(g) == g & TID_MASK}
    named = zip(pids(numbers(data, "globalPid")).tolist(), data["name"].to_pylist(), strict=True)
    names |= {process: name for process, name in named if name}
    data = reading.db.fetch(ns.MPI_RANKS, ("globalTid", "rank"))
    ranks = dict(zip(pids(numbers(data, "globalTid")).tolist(), data["rank"].to_pylist(), strict=True))
    columns = {
        "host": [machine] * len(seen),
        "pid": list(seen),
        "name": [names.get(p) for p in seen],
        "rank": [ranks.get(p) for p in seen],
    }
    return model.table("processes", columns, len(seen))


def _gpus(reading: Reading) -> list[dict[str, object]]:
    data = reading.db.fetch(ns.GPU, ("id", "smCount", "totalMemory", "computeMajor", "computeMinor"), ("name",))
    words = {"smCount": "sm_count", "totalMemory": "memory_bytes", "computeMajor": "major", "computeMinor": "minor"}
    return [{words.get(k, k): v for k, v in row.items() if v is not None} for row in data.to_pylist()]


def _pairs(reading: Reading, *tables: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for table in tables:
        data = reading.db.fetch(table, texts=("name", "value"))
        pairs = zip(data["name"].to_pylist(), data["value"].to_pylist(), strict=True)
        found.update((name, value) for name, value in pairs if name is not None and value is not None)
    return found


def _scalar(reading: Reading, table: str, column: str) -> int | None:
    values: list[int | None] = reading.db.fetch(table, (column,))[column].to_pylist()
    return next((v for v in values if v is not None), None)
