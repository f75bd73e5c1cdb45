"""Large traces of known content, in the byte shape of what torch.profiler and `nsys export` write.

    python benchmarks/generate.py torch OUT.json EVENTS
    python benchmarks/generate.py nsight OUT.sqlite ROWS

A thread launches kernels from operators (torch) or ranges (Nsight); of 8 torch steps one ends in a compile and one in a
module load. Half a million torch events are 129 MB, a million Nsight rows 57 MB.
"""

from __future__ import annotations

import json
import random
import sqlite3
import sys
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

STEP_CALLS = 1500
OPERATORS = ("linear", "matmul", "mm", "addmm", "add", "mul", "copy_", "to", "view", "silu", "cat", "bmm", "transpose")
TIME = '"ts": {}.{:03d}, "dur": {}.{:03d}'
OPERATOR = (
    '  {{\n    "ph": "X", "cat": "cpu_op", "name": "aten::{}", "pid": 25286, "tid": 25286,\n    ' + TIME + ",\n"
    '    "args": {{\n      "External id": {},"Record function id": 0, {}"Ev Idx": {}\n    }}\n  }}'
)
CALL = (
    '  {{\n    "ph": "X", "cat": "{}", "name": "{}", "pid": 25286, "tid": 25286,\n    ' + TIME + ",\n"
    '    "args": {{\n      "External id": {},      "cbid": 211, "correlation": {}\n    }}\n  }}'
)
KERNEL = (
    '  {{\n    "ph": "X", "cat": "kernel", "name": "{}", "pid": 0, "tid": 7,\n    ' + TIME + ",\n"
    '    "args": {{\n      "External id": {},      "queued": 0, "device": 0, "context": 1,      "stream": 7, '
    '"correlation": {},      "registers per thread": {},      "shared memory": {},      "blocks per SM": {:.6f},      '
    '"warps per SM": {:.6f},      "grid": [{}, {}, 1],      "block": [{}, 1, 1],      '
    '"est. achieved occupancy %": {}\n    }}\n  }}'
)
FLOW = (
    '  {{\n    "ph": "{}", "id": {}, "pid": {}, "tid": {}, "ts": {}.{:03d},\n    "cat": "ac2g", "name": "ac2g"{}\n  }}'
)
RANGE = (
    '  {{\n    "ph": "X", "cat": "user_annotation", "name": "{}", "pid": 25286, "tid": 25286,\n    ' + TIME + ",\n"
    '    "args": {{\n      "External id": {}, "Record function id": 0\n    }}\n  }}'
)
HEAD = (
    '{\n  "schemaVersion": 1,\n  "deviceProperties": [\n    {\n      "id": 0, "name": "NVIDIA H100 80GB HBM3", '
    '"numSms": 132\n    }\n  ],\n  "displayTimeUnit": "ms",\n  "baseTimeNanoseconds": 1751410836000000000,\n  '
    '"traceEvents": [\n'
)
SHAPES = (
    '"Input Dims": [[{}, {}], [{}, 4096]], "Input type": ["c10::BFloat16", "c10::BFloat16"], '
    '"Input Strides": [[4096, 1], [1, 4096]], "Concrete Inputs": ["", ""], '
)


def kernel_names() -> list[str]:
    """Names as they occur: short ones of Triton and libraries, long ones of templates."""
    functors = ("Add", "Mul", "Div", "Gelu", "Silu", "Copy", "Fill", "Sigmoid")
    found = [f"triton_poi_fused_{a.lower()}_{n}" for n in range(15) for a in functors]
    for name in functors:
        base = f"at::native::{name}Functor<c10::BFloat16>"
        found.append(
            f"void at::native::vectorized_elementwise_kernel<4, {base}, std::array<char*, 3ul> >(int, {base}, "
            "std::array<char*, 3ul>)"
        )
        found.append(
            "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::BinaryFunctor<"
            f"c10::BFloat16, c10::BFloat16, c10::BFloat16, at::native::binary_internal::{name}<float> > >(at::Tensor"
            f"IteratorBase&)::{{lambda(int)#1}}>(int, at::native::gpu_kernel_impl_nocast<{base} >)"
        )
    return [*found, *(f"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize{m}x128x64_cublas" for m in (64, 128, 256))]


def times(start: int, length: int) -> tuple[int, int, int, int]:
    """Start and length in ns as microseconds with three decimals."""
    return *divmod(start, 1000), *divmod(length, 1000)


class Torch:
    """Writes one torch.profiler trace."""

    def __init__(self, file: IO[str]) -> None:
        self.file, self.rows = file, 0
        self.now = self.step_began = self.free = 1_428_625_731_896_179
        self.ident = 1
        self.draw = random.Random(0)  # noqa: S311  a trace that is always the same
        self.names = [json.dumps(name)[1:-1] for name in kernel_names()]

    def put(self, *events: str) -> None:
        """Write events."""
        self.file.write("".join(",\n" * (self.rows + n > 0) + event for n, event in enumerate(events)))
        self.rows += len(events)

    def call(self) -> None:
        """An operator in an operator, its launch, its kernel, and the arrow between."""
        draw = self.draw.random
        self.ident += 2
        length, name = 9000 + int(draw() * 22000), OPERATORS[int(draw() * len(OPERATORS))]
        dims = SHAPES.format(1 << int(draw() * 12), 1 << int(draw() * 12), 1024) if draw() < 0.75 else ""
        launched, k = self.now + 3300, int(draw() * draw() * len(self.names))
        self.free = max(self.free + 800, launched + 4200 + int(draw() * 2500))
        took, kind = 2000 + int(draw() ** 4 * 180_000), ("cuda_driver", "cuLaunchKernelEx")
        category, api = kind if k % 3 == 0 else ("cuda_runtime", "cudaLaunchKernel")
        self.put(
            OPERATOR.format(name, *times(self.now, length), self.ident, dims, self.rows),
            OPERATOR.format("empty_strided", *times(self.now + 1800, length - 3200), self.ident + 1, "", self.rows),
            CALL.format(category, api, *times(launched, 3000), self.ident + 1, self.ident),
            FLOW.format("s", self.ident, 25286, 25286, *divmod(launched, 1000), ""),
            KERNEL.format(
                self.names[k], *times(self.free, took), self.ident + 1, self.ident, 16 + k, k % 5 << 14, k / 13, k / 4,
                1 + k * 13 % 4096, 1 + k % 4, 32 << k % 5, min(100, k),
            ),
            FLOW.format("f", self.ident, 0, 7, *divmod(self.free, 1000), ', "bp": "e"'),
        )  # fmt: skip
        self.free += took
        self.now += length + 900

    def step(self, number: int) -> None:
        """The end of a step: wait for the device; now and then, something cold."""
        self.ident += 2
        wait = max(2000, self.free - self.now)
        self.put(CALL.format("cuda_runtime", "cudaStreamSynchronize", *times(self.now, wait), 0, self.ident))
        self.now += wait
        if number % 8 == 1:
            self.put(OPERATOR.format("Torch-Compiled Region: 0/0", *times(self.now, 40_000_000), 0, "", 0))
        elif number % 8 == 5:
            self.put(CALL.format("cuda_driver", "cuModuleLoadData", *times(self.now, 40_000_000), 0, self.ident + 1))
        self.now += 40_000_000 if number % 8 in (1, 5) else 0
        self.put(RANGE.format(f"ProfilerStep#{number}", *times(self.step_began, self.now - self.step_began), 0))
        self.step_began = self.now


def torch_trace(path: Path, events: int) -> None:
    """Write a torch.profiler trace of about so many events."""
    with path.open("w") as file:
        file.write(HEAD)
        made, calls = Torch(file), 0
        while made.rows < events:
            made.call()
            calls += 1
            if calls % STEP_CALLS == 0:
                made.step(calls // STEP_CALLS)
        file.write('\n  ],\n  "traceName": "trace.json"\n}\n')


PROCESS = 1 << 56 | 4242 << 24
THREAD = PROCESS | 4242
INT = "INTEGER NOT NULL"
EVENTS = ("CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS")
CHUNK = 50_000  # rows held at a time
TABLES = {
    "StringIds": f"id {INT} PRIMARY KEY, value TEXT NOT NULL",
    "META_DATA_EXPORT": "name TEXT NOT NULL, value TEXT",
    "TARGET_INFO_SESSION_START_TIME": "utcEpochNs INTEGER, utcTime TEXT, localTime TEXT",
    "TARGET_INFO_GPU": f"id {INT}, name TEXT, uuid TEXT, smCount INTEGER, totalMemory INTEGER, cuDevice INTEGER",
    "CUPTI_ACTIVITY_KIND_KERNEL": ", ".join(f"{c} INTEGER" for c in (
        "start", "end", "deviceId", "contextId", "greenContextId", "streamId", "correlationId", "globalPid",
        "demangledName", "shortName", "mangledName", "launchType", "cacheConfig", "registersPerThread", "gridX",
        "gridY", "gridZ", "blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory",
        "localMemoryPerThread", "localMemoryTotal", "gridId", "sharedMemoryExecuted", "graphNodeId",
        "sharedMemoryLimitConfig")),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ", ".join(f"{c} INTEGER" for c in (
        "start", "end", "eventClass", "globalTid", "correlationId", "nameId", "returnValue", "callchainId")),
    "NVTX_EVENTS": "start INTEGER, end INTEGER, eventType INTEGER, rangeId INTEGER, category INTEGER, color INTEGER, "
    "text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, "
    "int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, floatValue REAL, "
    "jsonTextId INTEGER, jsonText TEXT, binaryData TEXT",
}  # fmt: skip


def nsight_rows(rows: int) -> Iterator[dict[str, list[tuple[object, ...]]]]:
    """Rows of the event tables, some at a time: twelve launches in two ranges in one range, again and again."""
    draw, names = random.Random(0).random, len(kernel_names())  # noqa: S311  as above
    parts: tuple[list[tuple[object, ...]], ...] = ([], [], [])
    kernels, calls, ranges = parts
    now = began = free = 3_000_000_000

    def push(begin: int, text: int) -> None:
        ranges.append((begin, now, 59, *[None] * 4, THREAD, None, text, 0, *[None] * 9))

    for tree in range(rows // 27):
        outer = now
        for n in range(12):
            began = now if n % 6 == 0 else began
            k, ident, took = int(draw() * draw() * names), 12 * tree + n + 100, 2500 + int(draw() * 3000)
            free = max(free + 700, now + took + 900)
            length = 1500 + int(draw() ** 4 * 60_000)
            calls.append((now, now + took, 0, THREAD, ident, names + 1, 0, None))
            kernels.append((
                free, free + length, 0, 1, None, 7, ident, PROCESS, k + 1, k + 1, k + 1, 0, 0, 16 + k,
                1 + k * 13 % 4096, 1 + k % 4, 1, 32 << k % 5, 1, 1, k % 4 << 10, k % 5 << 14, 0, 0, ident, 65536,
                None, None,
            ))  # fmt: skip
            free, now = free + length, now + took + 2500
            if n % 6 == 5:
                push(began, names + 2 + n // 6)
        push(outer, names + 4)
        if tree % 100 == 99:
            calls.append((now, max(now, free), 0, THREAD, 50, names + 5, 0, None))
            now = max(now, free)
        if len(kernels) > CHUNK:
            yield dict(zip(EVENTS, parts, strict=True))
            for part in parts:
                part.clear()
    yield dict(zip(EVENTS, parts, strict=True))


def nsight_export(path: Path, rows: int) -> None:
    """Write an Nsight Systems export of about so many rows."""
    path.unlink(missing_ok=True)
    texts = [*kernel_names(), "cudaLaunchKernel_v7000", "attention", "mlp", "layer", "cudaStreamSynchronize_v3020"]
    said = {
        "StringIds": list(enumerate(texts, 1)),
        "META_DATA_EXPORT": [("EXPORT_SCHEMA_VERSION", "3.13.1"), ("EXPORT_PRODUCT_VERSION", "2024.4.1")],
        "TARGET_INFO_SESSION_START_TIME": [(1_751_410_836_000_000_000, "", "")],
        "TARGET_INFO_GPU": [(0, "NVIDIA H100 80GB HBM3", "GPU-0", 132, 85_018_279_936, 0)],
    }
    with sqlite3.connect(path) as database:
        for table, columns in TABLES.items():
            database.execute(f"CREATE TABLE {table} ({columns})")
        for filled in chain([said], nsight_rows(rows)):
            for table, values in filled.items():
                marks = ", ".join("?" * (TABLES[table].count(",") + 1))
                database.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
    database.close()


if __name__ == "__main__":
    {"torch": torch_trace, "nsight": nsight_export}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
