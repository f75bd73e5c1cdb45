"""Names and numbers of Nsight Systems exports: the only identifiers that ever reach SQL, and its unnamed codes.

Versions 2020 to 2026 are covered (schema none to 3.25); a table or column that an export lacks is simply absent.
"""

from __future__ import annotations

from typing import Final

RUNTIME: Final = "CUPTI_ACTIVITY_KIND_RUNTIME"
NVTX: Final = "NVTX_EVENTS"
OSRT: Final = "OSRT_API"
PROFILER_OVERHEAD: Final = "PROFILER_OVERHEAD"
CUPTI_OVERHEAD: Final = "CUPTI_ACTIVITY_KIND_OVERHEAD"
KERNEL: Final = "CUPTI_ACTIVITY_KIND_KERNEL"
MEMCPY: Final = "CUPTI_ACTIVITY_KIND_MEMCPY"
MEMSET: Final = "CUPTI_ACTIVITY_KIND_MEMSET"
GRAPH_TRACE: Final = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
SYNC: Final = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
# Exports before schema 3.11 have nodes in the table of graphs.
GRAPHS: Final = ("CUDA_GRAPH_EVENTS", "CUDA_GRAPH_NODE_EVENTS")
STRINGS: Final = "StringIds"
THREAD_NAMES: Final = "ThreadNames"
PROCESSES: Final = "PROCESSES"
MPI_RANKS: Final = "MPI_RANKS"
GPU: Final = "TARGET_INFO_GPU"
CUDA_DEVICE: Final = "TARGET_INFO_CUDA_DEVICE"
SESSION: Final = "TARGET_INFO_SESSION_START_TIME"
SYSTEM: Final = "TARGET_INFO_SYSTEM_ENV"
DETAILS: Final = "ANALYSIS_DETAILS"
EXPORT_META: Final = ("META_DATA_EXPORT", "EXPORT_META_DATA")  # 2023.3 swapped the words

_ON_STREAM = ("start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid")
_KERNEL = (
    *("demangledName", "shortName", "mangledName", "registersPerThread", "gridX", "gridY", "gridZ"),
    *("blockX", "blockY", "blockZ", "staticSharedMemory", "dynamicSharedMemory", "graphNodeId"),
)
_NVTX = (
    *("start", "end", "eventType", "category", "text", "textId", "globalTid", "endGlobalTid", "domainId"),
    *("uint64Value", "int64Value", "doubleValue", "uint32Value", "int32Value", "floatValue", "jsonText", "jsonTextId"),
)
EVENT_TABLES: Final[dict[str, tuple[str, ...]]] = {
    RUNTIME: ("start", "end", "globalTid", "nameId", "eventClass", "correlationId"),
    NVTX: _NVTX,
    OSRT: ("start", "end", "globalTid", "nameId"),
    PROFILER_OVERHEAD: ("start", "end", "globalTid", "nameId", "overheadType"),
    CUPTI_OVERHEAD: ("start", "end", "globalTid", "nameId", "overheadType", "correlationId"),
    KERNEL: (*_ON_STREAM, *_KERNEL),
    MEMCPY: (*_ON_STREAM, "bytes", "copyKind", "graphNodeId"),
    MEMSET: (*_ON_STREAM, "bytes", "graphNodeId"),
    GRAPH_TRACE: (*_ON_STREAM, "graphId", "graphExecId"),
}
# Tables whose rows are no events of ours; they are counted. SYNC says what calls waited for, GRAPHS what was captured.
SKIPPED_TABLES: Final = (
    SYNC, "CUPTI_ACTIVITY_KIND_CUDA_EVENT", *GRAPHS, "CUDA_GPU_MEMORY_USAGE_EVENTS", "SCHED_EVENTS", "COMPOSITE_EVENTS",
    "GPU_METRICS", "GENERIC_EVENTS", "CUDA_UM_CPU_PAGE_FAULT_EVENTS", "CUDA_UM_GPU_PAGE_FAULT_EVENTS",
)  # fmt: skip
KNOWN: Final[dict[str, tuple[str, ...]]] = {
    **EVENT_TABLES,
    STRINGS: ("id", "value"),
    THREAD_NAMES: ("globalTid", "nameId"),
    PROCESSES: ("globalPid", "name"),
    MPI_RANKS: ("globalTid", "rank"),
    # 2020 called `id` `deviceId`
    GPU: ("id", "deviceId", "cuDevice", "name", "uuid", "smCount", "totalMemory", "computeMajor", "computeMinor"),
    CUDA_DEVICE: ("gpuId", "cudaId", "pid", "uuid"),
    SESSION: ("utcEpochNs",),
    SYSTEM: ("name", "value"),
    DETAILS: ("duration",),
    **dict.fromkeys(EXPORT_META, ("name", "value")),
    **dict.fromkeys(SKIPPED_TABLES, ()),
    **dict.fromkeys(GRAPHS, ("start", "globalTid", "graphNodeId", "originalGraphNodeId", "graphId", "originalGraphId")),
    SYNC: ("correlationId", "globalPid", "deviceId", "streamId", "syncType", "eventId"),
}

NEWEST_SCHEMA: Final = (3, 25)  # the newest that was checked
NVTX_RANGES: Final = (59, 60, 70, 71)  # push/pop, start/end, and both again as imported from NVTXT text
NVTX_START_END: Final = (60, 71)
NVTX_CATEGORY, NVTX_THREAD_NAME, NVTX_DOMAIN = 33, 39, 75
SYNC_TYPES: Final = {1: "event", 2: "stream waits for event", 3: "stream", 4: "context"}
RUNTIME_CLASSES: Final = {0: "runtime", 1: "driver"}

# Subprocesses and the pipes to them tell a compiler or C compiler at work; a `read` counts once it has waited long.
OSRT_NAMES: Final = ("waitpid", "wait4", "posix_spawn", "posix_spawnp", "vfork", "fork", "pipe2", "execve")
OSRT_WAITING_READ: Final = "read"
OSRT_READ_NS: Final = 15_000_000

# Written as `nsys stats` 2023.4 and later prints them; exports before 2022.4 have no table of these.
COPY_KINDS: Final = (
    "Unknown", "Host-to-Device", "Device-to-Host", "Host-to-Array", "Array-to-Host", "Array-to-Array",
    "Array-to-Device", "Device-to-Array", "Device-to-Device", "Host-to-Host", "Peer-to-Peer",
    "Unified Host-to-Device", "Unified Device-to-Host", "Unified Device-to-Device",
)  # fmt: skip
OVERHEAD_TYPES: Final = (
    "Undefined", "Unknown", "Driver JIT compiler", "Buffer flush", "Instrumentation", "Resource",
    "Runtime module loading", "Lazy function loading", "Command Buffer Full",
)  # fmt: skip
