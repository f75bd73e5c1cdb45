"""torch.profiler's JSON (and its relatives: Chrome's trace event format) to a `Trace`."""

from __future__ import annotations

import gc
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tprof.model import TIME_LIMIT, Trace, table
from tprof.read.inflate import Source
from tprof.read.torch_build import Parts, build
from tprof.read.torch_columns import Columns
from tprof.read.torch_document import Document, fields
from tprof.read.torch_notes import notes
from tprof.read.torch_scan_columns import Scanned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa

_ABSOLUTE_US: Final = 10**15  # microseconds since 1970 are above, since Kineto's base below


def read_torch(path: Path, source: str, progress: Callable[[int, int], None] | None = None) -> Trace:
    """Read one torch.profiler trace, plain or gzip.

    Args:
        path: the file.
        source: how notes, errors and the table `sources` call it.
        progress: called with (bytes read, bytes in the file).

    Raises:
        SourceError: the file cannot be read, or is not a Chrome trace.
    """
    stream = Source(path, source, progress)
    document, columns = Document(stream), Columns()
    with _no_collection():
        for block in document.blocks():
            if isinstance(block, Scanned):
                block.put(columns)
            else:
                columns.add(block)
    said = fields(document)
    host = said.get("host_name")
    parts = build(columns, said, host if isinstance(host, str) else "")
    found = (*stream.notes, *notes(parts, document.damage, stream))
    epoch = _epoch(said, parts)
    sources = _sources(parts, document.damage.lost, source, said, epoch)
    return Trace(**parts.tables, sources=sources, epoch_ns=epoch, notes=found, meta=_meta(said, parts))


@contextmanager
def _no_collection() -> Iterator[None]:
    """No garbage collection while blocks are decoded: their events hold no cycles, and a pass costs 10 %."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _epoch(said: dict[str, Any], parts: Parts) -> int | None:
    base = said.get("baseTimeNanoseconds")
    if isinstance(base, int) and abs(base) < TIME_LIMIT:
        return base
    starts = [parts.tables[name]["start_ns"][0].as_py() for name in ("host", "device") if parts.tables[name].num_rows]
    return 0 if starts and min(starts) > _ABSOLUTE_US * 1000 else None


def _sources(parts: Parts, lost: int, source: str, said: dict[str, Any], epoch: int | None) -> pa.Table:
    version = said.get("schemaVersion")
    return table("sources", {
        "path": source, "format": "torch", "producer": _producer(parts),
        "version": None if version is None else str(version),
        "rows_read": parts.tables["host"].num_rows + parts.tables["device"].num_rows,
        "rows_dropped": sum(parts.dropped.values()) + lost,
        "rows_skipped": json.dumps({kind: count for kind, count in parts.skipped.items() if count}),
        "epoch_ns": epoch,
    }, rows=1)  # fmt: skip


def _producer(parts: Parts) -> str:
    if parts.old_autograd:
        return "torch.autograd.profiler"
    return "torch_npu" if parts.platform == "Ascend" else "torch.profiler"


KNOWN_FIELDS: Final = (
    "schemaVersion", "deviceProperties", "distributedInfo", "trace_id", "record_shapes", "with_stack", "with_flops",
    "with_modules", "profile_memory", "cuda_driver_version", "cuda_runtime_version", "cupti_version",
    "hip_driver_version", "hip_runtime_version", "roctracer_version", "displayTimeUnit", "traceName",
    "baseTimeNanoseconds", "group_trace_id",
)  # fmt: skip


def _meta(said: dict[str, Any], parts: Parts) -> dict[str, object]:
    """What is known to be harmless; users and schedulers write names and command lines into traces as well."""
    return {**{key: said[key] for key in KNOWN_FIELDS if key in said}, "platform": parts.platform, "gpus": _gpus(said)}


def _gpus(said: dict[str, Any]) -> list[dict[str, object]]:
    """The device properties under the names that every reader gives them."""
    words = {"name": "name", "numSms": "sm_count", "computeMajor": "major", "computeMinor": "minor"}
    known = said.get("deviceProperties")
    seen = [p for p in known if isinstance(p, dict)] if isinstance(known, list) else []
    return [{word: p[key] for key, word in words.items() if isinstance(p.get(key), int | str)} for p in seen]
