"""Columns of a torch.profiler file to the tables of a `Trace`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tprof.model import labels, nullable, spelled, table, triples, within
from tprof.read.torch_columns import DEVICE_CATEGORIES, DEVICE_FIELDS, Columns
from tprof.read.torch_events import MISSING
from tprof.read.torch_labels import extra_text, shape_text, strings
from tprof.read.torch_numbers import BAD_TIME
from tprof.read.torch_places import Places

if TYPE_CHECKING:
    import pyarrow as pa

HOST_CATEGORIES: Final = {
    "cpu_op": "op", "Operator": "op", "operator": "op", "user_annotation": "range", "python_function": "python",
    "overhead": "overhead", "cuda_runtime": "runtime", "Runtime": "runtime", "hip_runtime": "runtime",
    "xpu_runtime": "runtime", "mtia_runtime": "runtime", "privateuse1_runtime": "runtime", "glow_runtime": "runtime",
    "cuda_driver": "driver", "xpu_driver": "driver", "privateuse1_driver": "driver",
}  # fmt: skip
# Rows on a GPU track or of the profiler itself that are no events.
SKIPPED_CATEGORIES: Final = frozenset({
    "cuda_sync", "gpu_user_annotation", "Trace", "cuda_profiler_range", "collective_comm", "mtia_insight",
    "mtia_workloadd", "mtia_ccp_events", "gpu_pm_counter", "cuda_event", "xpu_sync", "privateuse1_sync",
    "tprof_phase", "tprof_cold", "tprof_launch", "osrt",  # of `tprof export`, from elsewhere
})  # fmt: skip
_KINDS: Final = ("kernel", "memcpy", "memset", "op", "range", "python", "overhead", "runtime", "driver")
_DEVICE_KINDS: Final = 3  # the first so many
_API: Final = 7  # from here on
_SKIP: Final = -1
_STEP: Final = "ProfilerStep#"
# Tasks of an Ascend stream that wait or signal are no work; copies run on the DMA engines.
_ASCEND_WAITS: Final = ("EVENT", "NOTIFY", "WAIT", "RECORD", "PLACE_HOLDER", "CAPTURE")
_ASCEND_COPIES: Final = ("MEMCPY", "SDMA", "PCIE_DMA")


@dataclass
class Parts:
    """The tables of a file but `sources`, with what was left out and why."""

    tables: dict[str, pa.Table] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)
    old_autograd: bool = False
    platform: str | None = None


def build(columns: Columns, fields: dict[str, Any], host: str) -> Parts:
    """Build the tables; `columns` is used up."""
    parts, places = Parts(skipped=dict(columns.skipped)), Places(columns, host)
    parts.old_autograd = places.old_autograd
    place, device_row = columns.take("thread"), columns.take("device_row")
    kinds = _kinds(columns, place, places, parts)
    if places.ascend:
        _ascend(columns, kinds, device_row, places.on_ascend[place], parts)
    start, end = _times(columns, kinds, parts)
    host_rows = np.flatnonzero(kinds >= _DEVICE_KINDS)
    device_rows = np.flatnonzero((kinds >= 0) & (kinds < _DEVICE_KINDS))
    common = {"start_ns": start, "end_ns": end, "kind": kinds, "place": place, "name": columns.take("name"),
              "correlation": columns.take("correlation"), "external_id": columns.take("external")}  # fmt: skip
    on_device = {name: column[device_rows] for name, column in common.items()}
    on_host = {name: common.pop(name)[host_rows] for name in tuple(common)}
    del start, end, kinds, place
    names = strings(columns.names)
    parts.tables["host"] = _host(columns, on_host, host_rows, names, places)
    at = np.searchsorted(device_row, device_rows)
    parts.tables["device"] = _device(columns, on_device, at, names, places)
    parts.tables.update(places.tables(fields, devices_used=bool(len(device_rows))))
    parts.platform = _platform(columns, places, parts)
    return parts


def _kinds(columns: Columns, place: np.ndarray, places: Places, parts: Parts) -> np.ndarray:
    """Number of every row's kind in `_KINDS`; negative where it is no event."""
    category = columns.take("category")
    known = {**DEVICE_CATEGORIES, **HOST_CATEGORIES}
    look = np.full(len(columns.categories) + 1, _SKIP, np.int8)
    counts = np.bincount(category, minlength=len(columns.categories))
    for code, label in enumerate(map(str, columns.categories)):
        if label in SKIPPED_CATEGORIES:
            parts.skipped[label] = int(counts[code])
            continue
        look[code] = _KINDS.index(known.get(label, "range"))
        if label and label not in known:
            parts.unknown[label] = int(counts[code])
    kinds = look[category]
    if "" in columns.categories:
        blank = category == columns.categories[""]
        kinds[blank] = places.kinds(place[blank], _KINDS)
    steps = [code for name, code in columns.names.items() if str(name).startswith(_STEP)]
    if steps:  # before torch 1.9 a step was an operator; it is the user's range all the same
        kinds[np.isin(columns.peek("name"), steps) & (kinds == _KINDS.index("op"))] = _KINDS.index("range")
    return kinds


def _ascend(columns: Columns, kinds: np.ndarray, rows: np.ndarray, mine: np.ndarray, parts: Parts) -> None:
    """Device rows of an Ascend file: only tasks are work; "Free" and the like are derived from them."""
    tasks = [str(task) if task else "" for task in columns.tasks]
    waits = np.array([any(word in task for word in _ASCEND_WAITS) for task in tasks], bool)
    copies = np.array([any(word in task for word in _ASCEND_COPIES) for task in tasks], bool)
    task, named = columns.take("task"), np.array([bool(task) for task in tasks], bool)
    no_task = ~named[task] & (columns.peek("stream_ascend") == MISSING)
    for label, chosen in (("derived", no_task), ("wait", waits[task])):
        gone = rows[chosen & mine[rows]]
        kinds[gone] = _SKIP
        parts.skipped[label] = len(gone)
    kinds[rows[copies[task] & mine[rows] & ~waits[task]]] = _KINDS.index("memcpy")


def _times(columns: Columns, kinds: np.ndarray, parts: Parts) -> tuple[np.ndarray, np.ndarray]:
    """Start and end of every row; rows whose time cannot be become no events, and are counted."""
    start, length = columns.take("start"), columns.take("length")
    end = start + length  # where the sum wraps it is before the start, or beyond what can be
    no_time = (length == BAD_TIME) | ~within(start) | ~within(end)
    negative = (end < start) & ~no_time
    zero = (start == 0) & (length == 0) & (kinds < _DEVICE_KINDS)
    for why, rows in (("no usable time", no_time), ("end before start", negative), ("a kernel at time zero", zero)):
        if count := int((rows & (kinds >= 0)).sum()):
            parts.dropped[why] = count
    kinds[no_time | negative | zero] = _SKIP
    return start, end


def _host(
    columns: Columns, taken: dict[str, np.ndarray], rows: np.ndarray, names: list[str], places: Places
) -> pa.Table:
    thread, pid, tid = places.host(taken["place"], taken["kind"] >= _API)
    shapes = _spread(columns.take("shape_row"), columns.take("shape"), rows)
    extras = _spread(columns.take("extra_row"), columns.take("extra"), rows)
    return table("host", {
        "start_ns": taken["start_ns"], "end_ns": taken["end_ns"], "thread": thread, "pid": pid, "tid": tid,
        "kind": labels(taken["kind"], _KINDS), "name": labels(*_compact(taken["name"], names)),
        "correlation": nullable(taken["correlation"]), "external_id": nullable(taken["external_id"]),
        "shape_key": labels(shapes, [shape_text(value) for value in columns.shapes]),
        "attrs": spelled(extras, [extra_text(value) for value in columns.extras]),
    }, rows=len(rows))  # fmt: skip


def _spread(owners: np.ndarray, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Values that some rows of the file have, for `rows` (sorted); -1 for the others."""
    if not len(owners) or not len(rows):
        return np.full(len(rows), -1, np.int32)
    at = np.searchsorted(owners, rows)
    at[at == len(owners)] = 0
    return np.where(owners[at] == rows, values[at], -1).astype(np.int32)


def _compact(code: np.ndarray, values: list[str]) -> tuple[np.ndarray, list[str]]:
    """Codes that point to used values only."""
    used = np.zeros(len(values), bool)
    used[code] = True
    renumber = np.cumsum(used) - 1
    return renumber[code], [value for value, keep in zip(values, used.tolist(), strict=True) if keep]


def _device(
    columns: Columns, taken: dict[str, np.ndarray], at: np.ndarray, names: list[str], places: Places
) -> pa.Table:
    own = {name: columns.take(name)[at] for name in (*DEVICE_FIELDS, "grid", "block")}
    stream = np.where(own["stream"] == MISSING, own["stream_ascend"], own["stream"])
    device, stream = places.device(taken["place"], own["device"], stream)
    kernels = [name.removesuffix(".kd") for name in names]  # ROCm's name of a kernel's descriptor
    return table("device", {
        "start_ns": taken["start_ns"], "end_ns": taken["end_ns"], "device": device, "pid": places.main,
        "context": nullable(own["context"]), "stream": stream, "kind": labels(taken["kind"], _KINDS),
        "name": labels(*_compact(taken["name"], kernels)), "correlation": nullable(taken["correlation"]),
        "external_id": nullable(taken["external_id"]),
        "grid": triples(own["grid"], own["grid"][:, 0] < 0), "block": triples(own["block"], own["block"][:, 0] < 0),
        "registers": nullable(own["registers"]), "shared_bytes": nullable(own["shared"]),
        "bytes": nullable(own["bytes"]), "graph_node": nullable(own["node"]),
    }, rows=len(at))  # fmt: skip


def _platform(columns: Columns, places: Places, parts: Parts) -> str | None:
    """Which vendor's stack wrote the file."""
    if places.ascend:
        return "Ascend"
    seen = {str(name).split("_")[0] for name in columns.categories}
    for prefix, name in (("xpu", "XPU"), ("mtia", "MTIA"), ("hpu", "HPU")):
        if prefix in seen:
            return name
    if any(str(name).startswith("hip") for name in columns.names):
        return "ROCm"
    cuda = parts.tables["device"].num_rows or seen & {"cuda", "Runtime", "kernel"}
    return "CUDA" if cuda else None
