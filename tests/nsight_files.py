"""Builds small Nsight Systems exports, and unpacks the shared ones."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PID, TID = 4242, 4243
GLOBAL_PID = (1 << 48) | (PID << 24)
GLOBAL_TID = GLOBAL_PID | TID

STRINGS = {1: "cudaLaunchKernel_v7000", 2: "cuModuleLoadData", 3: "void gemm<float>(int)", 4: "gemm", 5: "waitpid",
           6: "read", 7: "mmap64", 8: "cudaGraphLaunch_v10000", 9: "lazy load"}  # fmt: skip


def good() -> dict[str, list[dict[str, Any]]]:
    """The tables of an export with two API calls, one kernel, one copy, one fill and one range."""
    on_stream = {"deviceId": 0, "contextId": 1, "streamId": 7, "globalPid": GLOBAL_PID}
    dims = {**{f"grid{x}": n for x, n in zip("XYZ", (4, 2, 1), strict=True)}, "blockX": 128, "blockY": 1, "blockZ": 1}
    return {
        "StringIds": [{"id": k, "value": v} for k, v in STRINGS.items()],
        "META_DATA_EXPORT": [
            {"name": "EXPORT_PRODUCT_NAME", "value": "NVIDIA Nsight Systems"},
            {"name": "EXPORT_PRODUCT_VERSION", "value": "2025.3.2.0"},
            {"name": "EXPORT_SCHEMA_VERSION", "value": "3.20.3"},
            {"name": "EXPORT_USER", "value": "somebody"},
        ],
        "TARGET_INFO_SESSION_START_TIME": [{"utcEpochNs": 1_700_000_000_000_000_000}],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            {"start": 100, "end": 150, "globalTid": GLOBAL_TID, "nameId": 1, "eventClass": 0, "correlationId": 11},
            {"start": 50, "end": 90, "globalTid": GLOBAL_TID, "nameId": 2, "eventClass": 1, "correlationId": 10},
        ],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            {**on_stream, **dims, "start": 200, "end": 300, "correlationId": 11, "demangledName": 3, "shortName": 4,
             "registersPerThread": 32, "staticSharedMemory": 100, "dynamicSharedMemory": 24, "graphNodeId": None},
        ],
        "CUPTI_ACTIVITY_KIND_MEMCPY": [
            {**on_stream, "start": 160, "end": 170, "correlationId": 12, "bytes": 4096, "copyKind": 1},
        ],
        "CUPTI_ACTIVITY_KIND_MEMSET": [{**on_stream, "start": 180, "end": 185, "correlationId": 13, "bytes": 64}],
        "NVTX_EVENTS": [nvtx(10, 400, text="step")],
    }  # fmt: skip


def nvtx(start: int, end: int | None, kind: int = 59, **more: object) -> dict[str, Any]:
    """A row of NVTX_EVENTS."""
    columns = ("text", "textId", "domainId", "category", "endGlobalTid", "uint64Value", "int64Value", "doubleValue")
    row = {"start": start, "end": end, "eventType": kind, "globalTid": GLOBAL_TID}
    return {**row, **dict.fromkeys(columns), **more}


def write(path: Path, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Path:
    """Write tables as an SQLite file; a column is what the first row has, and keeps any value given to it."""
    with closing(sqlite3.connect(path)) as db:
        for name, rows in tables.items():
            columns = ", ".join(f'"{c}"' for c in rows[0])
            db.execute(f"CREATE TABLE {name} ({columns})")
            db.executemany(
                f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})",
                [tuple(r[c] for c in rows[0]) for r in rows],
            )
        db.commit()
    return path


def unpack(packed: Path, folder: Path) -> Path:
    """Inflate a shared export."""
    path = folder / packed.name.removesuffix(".gz")
    if not path.exists():
        path.write_bytes(gzip.decompress(packed.read_bytes()))
    return path
