"""The schema: the words of a trace, its tables and their columns. Imports nothing of tprof, and no table library.

Times are integer nanoseconds on the trace's own clock; every such column ends in `_ns`. A null means "not known":
it never becomes a zero or a float. Strings that repeat are dictionary-encoded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

SCHEMA_VERSION: Final = 1

Phase = Literal[
    "compile", "cache", "launcher_build", "module_load", "autotune", "graph_compile", "graph_capture", "init",
    "launch", "sync", "memory", "collective", "framework", "host", "unattributed",
    "turnaround", "dependency", "graph",
]  # fmt: skip
Purpose = Literal["work", "setup", "warmup", "capture", "tuning"]
Path = Literal["aten", "inductor", "triton", "library", "collective", "memory", "other"]
Basis = Literal["recorded", "inferred", "unattributed"]

COLD_PHASES: Final[tuple[Phase, ...]] = (
    "compile", "cache", "launcher_build", "module_load", "autotune", "graph_compile", "graph_capture", "init",
)  # fmt: skip
WARM_PHASES: Final[tuple[Phase, ...]] = (
    "launch", "sync", "memory", "collective", "framework", "host", "unattributed",
)  # fmt: skip
DEVICE_IDLE_PHASES: Final[tuple[Phase, ...]] = ("turnaround", "dependency", "graph")
PHASES: Final[tuple[Phase, ...]] = (*COLD_PHASES, *WARM_PHASES, *DEVICE_IDLE_PHASES)

# Where streams overlap an instant counts once, for the first of these that is running.
PURPOSES: Final[tuple[Purpose, ...]] = ("work", "setup", "warmup", "capture", "tuning")
PATHS: Final[tuple[Path, ...]] = ("aten", "inductor", "triton", "library", "collective", "memory", "other")
BASES: Final[tuple[Basis, ...]] = ("recorded", "inferred", "unattributed")

# What a host row is. `op`: a framework operator; `python`: an interpreter frame; `range`: a user range (NVTX,
# record_function) that nests on its thread; `startend`: an NVTX start/end range, which may overlap freely; `mark`: an
# instant or a compiler's begin mark; `runtime` and `driver`: calls of the device API;
# `osrt`: operating-system calls; `overhead`: what the profiler says of itself and of module loading. Of tprof's own
# recorder: `cold`, a recorded cold span; `launch`, a kernel launch; `request`, and `serve`, a stretch in which a thread
# served one.
HOST_KINDS: Final = (
    "op", "python", "range", "startend", "mark", "runtime", "driver", "osrt", "overhead",
    "cold", "launch", "request", "serve",
)  # fmt: skip
# What device work is. `graph`: one CUDA-graph execution whose kernels the capture does not show.
DEVICE_KINDS: Final = ("kernel", "memcpy", "memset", "graph")


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table; `dtype` is int64, int32, float64, bool, string, label (an encoded string) or int3."""

    name: str
    dtype: str
    meaning: str
    nullable: bool = True


def _required(name: str, dtype: str, meaning: str) -> Column:
    return Column(name, dtype, meaning, nullable=False)


_SPAN = (
    _required("start_ns", "int64", "begin, ns on the trace's clock"),
    _required("end_ns", "int64", "end, ns on the trace's clock; never before start_ns"),
)

TABLES: Final[dict[str, tuple[Column, ...]]] = {
    "host": (
        *_SPAN,
        _required("thread", "int32", "row of `threads`"),
        _required("pid", "int64", "operating-system process id"),
        _required("tid", "int64", "operating-system thread id; negative where the producer gave a name only"),
        _required("kind", "label", "one of HOST_KINDS"),
        _required("name", "label", "as the producer wrote it; API names without a version suffix"),
        Column(
            "correlation", "int64", "device API calls: joins the device events that the call enqueued, within a process"
        ),
        Column("external_id", "int64", "joins operators, calls and device events of one framework operator"),
        Column("domain", "label", "NVTX domain; null for the default domain and for every other producer"),
        Column(
            "parent", "int64", "row of `host`: the innermost op, python frame or range around this event on its thread"
        ),
        Column("shape_key", "label", "input shapes, dtypes and strides where recorded"),
        Column("request", "int64", "row of `host`: the request range that this event served"),
        Column("phase", "label", "phase that the recorder says the event was"),
        Column("kernel", "label", "kernel that a recorded event was about"),
        Column(
            "cold", "bool", "of a recorded launch: something was compiled, looked up, loaded or tuned on its behalf"
        ),
        Column("attrs", "string", "what else the producer said, as JSON"),
    ),
    "device": (
        *_SPAN,
        _required("device", "int32", "row of `devices`"),
        _required("pid", "int64", "operating-system process id"),
        Column("context", "int64", "CUDA context"),
        _required("stream", "int64", "stream id; a stream is (pid, device, context, stream)"),
        _required("kind", "label", "one of DEVICE_KINDS"),
        _required("name", "label", "full kernel name, or what a memory operation moves"),
        Column("correlation", "int64", "joins the launch, within a process"),
        Column("external_id", "int64", "joins the framework operator"),
        Column("launch", "int64", "row of `host` that enqueued this event; null is unlinked"),
        Column("grid", "int3", "thread blocks, x y z"),
        Column("block", "int3", "threads per block, x y z"),
        Column("registers", "int32", "registers per thread"),
        Column("shared_bytes", "int32", "shared memory per block"),
        Column("bytes", "int64", "bytes moved or set by a memory operation"),
        Column("graph_node", "int64", "CUDA-graph node id; of an execution recorded as a whole, the graph's id"),
        Column("capture", "int64", "row of `host`: the call that a CUDA graph captured, and that this replays"),
        Column("purpose", "label", "one of PURPOSES: why it ran"),
        Column("purpose_basis", "label", "recorded or inferred"),
        Column("path", "label", "one of PATHS: who wrote it"),
    ),
    # Exclusive cold spans per thread, and what is known of them; filled by `align`.
    "spans": (
        *_SPAN,
        _required("thread", "int32", "row of `threads`"),
        _required("phase", "label", "one of COLD_PHASES, or a phase that the user mapped a range to"),
        _required("basis", "label", "recorded or inferred"),
        Column("kernel", "label", "kernel on whose behalf the time was spent"),
        Column("evidence", "label", "what says so"),
    ),
    # One row per first use of a compiled kernel: what it cost until its module was on the device.
    "compiles": (
        *_SPAN,
        _required("thread", "int32", "row of `threads`"),
        Column("kernel", "label", "kernel that became usable; null where no launch followed"),
        _required("basis", "label", "recorded or inferred"),
        Column("cache_hit", "bool", "found in the disk cache; null where the trace cannot tell"),
        Column("graph_compile", "bool", "a graph compiler (Inductor) asked for it"),
        Column("specialization", "int64", "row of `specializations` that it made usable"),
        Column("candidate", "int64", "row of `candidates` that it was compiled for; null for none"),
        Column("loads", "int64", "module loads; null where the producer records none"),
        Column("compile_ns", "int64", "exclusive time, ns; includes what cannot be told apart from it"),
        Column("cache_ns", "int64", "disk lookup, ns; null where it cannot be told from compile_ns"),
        Column("launcher_build_ns", "int64", "build of the launcher, ns; null where it cannot be told from compile_ns"),
        Column("module_load_ns", "int64", "load onto the device, ns; null where it cannot be told from compile_ns"),
        Column("stages", "string", "ns of each stage of the compile by its name (ir, ttir, ttgir …), as JSON"),
    ),
    "candidates": (
        *_SPAN,
        _required("thread", "int32", "row of `threads`"),
        _required("kernel", "label", "kernel that was timed"),
        Column("config", "string", "the candidate's configuration where recorded"),
        _required("basis", "label", "recorded or inferred"),
        Column("repetitions", "int64", "timed repetitions"),
        Column("launches", "int64", "launches of the candidate, its warm-up and estimate included"),
        Column("device_ns", "int64", "device time of the candidate's own launches"),
        Column("flush_ns", "int64", "device time of the L2 flush between them"),
        Column("graph_compile", "bool", "a graph compiler (Inductor) ran this benchmark"),
        Column("median_ns", "int64", "what the benchmark measured, ns"),
        Column("winner", "bool", "the autotuner chose it"),
        Column("error", "string", "why it failed"),
    ),
    # Compiled variants of a Triton function, where recorded.
    "specializations": (
        _required("pid", "int64", "operating-system process id"),
        _required("process", "int32", "row of `processes`"),
        _required("function", "string", "module and qualified name"),
        Column("kernel", "string", "name on the device"),
        Column("start_ns", "int64", "when it was first asked for, ns"),
        Column("file", "string", "source file"),
        Column("line", "int64", "line of the function"),
        Column("hash", "string", "names its folder in Triton's cache"),
        Column("arguments", "string", "per argument its type and specialization, or its constant, as JSON"),
        Column("options", "string", "compiler options, as JSON"),
        Column("changes", "string", "what differs from the most similar earlier one, as JSON; null for the first"),
        Column("cache_hit", "bool", "found in the disk cache"),
        Column("registers", "int64", "registers per thread"),
        Column("spills", "int64", "spilled registers"),
        Column("shared_bytes", "int64", "shared memory per block"),
        Column("binary_bytes", "int64", "size of the binary"),
        Column("scalars", "string", "numbers that its first launch passed by name, as JSON"),
        Column("key_parts", "string", "what else the key of Triton's disk cache is made of, by its name, as JSON"),
    ),
    # What Dynamo and Inductor said of a graph, where recorded.
    "graph_events": (
        _required("start_ns", "int64", "when, ns"),
        _required("thread", "int32", "row of `threads`"),
        _required("kind", "label", "recompile, graph_cache or selection"),
        _required("name", "string", "function that is compiled again, cache, or operator that was chosen for"),
        Column("span", "int64", "row of `host`: the innermost recorded span that it happened in"),
        Column("outcome", "string", "the first guard that failed; hit, miss or bypass; the implementation chosen"),
        Column("attrs", "string", "what else was said, as JSON"),
    ),
    # Nodes of CUDA graphs (and graphs recorded as a whole), where recorded: instantiating a graph copies its nodes.
    "graph_nodes": (
        _required("start_ns", "int64", "when it was made, ns"),
        _required("thread", "int32", "row of `threads`"),
        _required("node", "int64", "CUDA-graph node id, or the graph's; unique in a process"),
        Column("original", "int64", "node that it is a copy of"),
    ),
    # What a process did before it could be recorded, and when its start-up was over.
    "startup": (
        *_SPAN,
        _required("process", "int32", "row of `processes`"),
        _required("kind", "label", "interpreter, import, recorder (what tprof itself took to begin) or ready"),
        _required("name", "string", "module that was imported, else the kind"),
        Column("thread", "int32", "row of `threads` that said that it was ready"),
    ),
    # Shape keys, where recorded.
    "shape_keys": (
        _required("pid", "int64", "operating-system process id"),
        _required("id", "int64", "as the process numbers them: launch markers name it"),
        _required("kernel", "string", "name on the device"),
        _required("key", "string", "grid and arguments as text: `shape_key` of the launches"),
        Column("start_ns", "int64", "when it was first seen, ns"),
        _required("launches", "int64", "launches"),
        _required("cold_launches", "int64", "launches for which something was cold"),
    ),
    "processes": (
        _required("host", "string", "machine the process ran on, where known, else the source's name"),
        _required("pid", "int64", "operating-system process id"),
        Column("name", "string", "executable or the name it gave itself"),
        Column("rank", "int64", "rank in a distributed job"),
        Column("parent_pid", "int64", "process that started it, or that it compiles for"),
        Column("start_ns", "int64", "when the system started it, ns, to within 10 ms"),
        Column("versions", "string", "versions of tprof, Python and the libraries in it, as JSON"),
        Column("environment", "string", "variables that steer Triton and torch, of the run, as JSON"),
    ),
    "threads": (
        _required("host", "string", "machine"),
        _required("pid", "int64", "operating-system process id"),
        _required("tid", "int64", "operating-system thread id; negative where the producer gave a name only"),
        Column("name", "string", "name of the thread"),
        Column("process", "int32", "row of `processes`, where a recorder says which"),
        Column("source", "int32", "row of `sources` that named it first; null where there is one source"),
    ),
    "devices": (
        _required("host", "string", "machine"),
        Column("pid", "int64", "process whose ordinal this is; null where the device is known by its UUID"),
        _required("ordinal", "int64", "device number as the process counts"),
        Column("uuid", "string", "the device's own identity, where known"),
        Column("name", "string", "model name"),
        _required("source", "int32", "row of `sources`"),
    ),
    "sources": (
        _required("path", "string", "as given"),
        _required("format", "string", "torch, nsight or tprof"),
        Column("producer", "string", "program that wrote it"),
        Column("version", "string", "version of the producer or of its schema"),
        _required("rows_read", "int64", "rows that became host or device events"),
        _required("rows_dropped", "int64", "rows that were lost; the warnings say why"),
        Column("rows_skipped", "string", "rows that are no events (flows, counters, metadata …) by kind, as JSON"),
        Column("epoch_ns", "int64", "UTC time of the source's zero, ns; null where the source does not say"),
        Column("clock_offset_ns", "int64", "taken off its times to put it on the recorder's clock, by beacons, ns"),
        Column("clock_error_ns", "int64", "bound of that offset's error, ns"),
    ),
}


@dataclass(frozen=True, slots=True)
class Note:
    """A warning that travels with a trace: what was lost, repaired or cannot be known.

    Attributes:
        code: stable, dashed, for programs (`cut-gzip`, `unlinked`).
        message: one sentence for a person.
        count: how many rows it concerns.
        source: path of the source.
    """

    code: str
    message: str
    count: int = 1
    source: str = ""

    def to_dict(self) -> dict[str, object]:
        """As the command line's JSON carries it."""
        return {"code": self.code, "message": self.message, "count": self.count, "source": self.source}
