"""Device work of an Nsight export: kernels, memory operations and opaque CUDA-graph executions, and their devices."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tprof import model
from tprof.read import nsight_schema as ns
from tprof.read.nsight_rows import Reading, distinct, numbers, pids
from tprof.read.nsight_strings import Labels, concat, constant, flat

if TYPE_CHECKING:
    from collections.abc import Sequence

_REQUIRED = ("start", "end", "deviceId", "streamId", "globalPid")
_OPTIONAL = ("contextId", "correlationId")
_NAMES = ("demangledName", "shortName", "mangledName")  # the best first
_GRID, _BLOCK = ("gridX", "gridY", "gridZ"), ("blockX", "blockY", "blockZ")
_NO_UUID = "00000000-0000-0000-0000-000000000000"  # what a scrubbed or virtual device says


@dataclass(frozen=True)
class DeviceRows:
    """Device events of one table: its rows, their kind and name, and the columns that only this kind has."""

    data: pa.Table
    kind: str
    name: Labels
    extra: dict[str, pa.Array]
    triples: dict[str, np.ndarray] = field(default_factory=dict)  # shape (rows, 3), -1 where not known


def read(reading: Reading) -> list[DeviceRows]:
    """All device work, table by table."""
    return [_kernels(reading), _copies(reading), _fills(reading), _graphs(reading)]


def assemble(parts: Sequence[DeviceRows]) -> tuple[pa.Table, list[tuple[int, ...]]]:
    """The table `device` by start, and the (pid, ordinal) of each device that its column `device` points to."""
    base = pa.concat_tables([p.data.select([*_REQUIRED, *_OPTIONAL]) for p in parts])
    order = np.lexsort((numbers(base, "streamId"), numbers(base, "start")))
    base = base.combine_chunks().take(pa.array(order))
    process = pids(numbers(base, "globalPid"))
    device, devices = _number_devices(process, numbers(base, "deviceId"))
    columns = {
        "start_ns": base["start"],
        "end_ns": base["end"],
        "device": device,
        "pid": process,
        "context": base["contextId"],
        "stream": base["streamId"],
        "correlation": base["correlationId"],
        "kind": concat([constant(p.kind, len(p.data)) for p in parts]).take(order).array(),
        "name": concat([p.name for p in parts]).take(order).array(),
        **{name: _stack(parts, name).take(pa.array(order)) for name in sorted({n for p in parts for n in p.extra})},
        **{name: _stack_triples(parts, name, order) for name in ("grid", "block")},
    }
    return model.table("device", columns, len(order)), devices


def device_rows(reading: Reading, devices: Sequence[tuple[int, ...]], host: str) -> pa.Table:
    """The table `devices` for the (pid, ordinal) given."""
    gpus, ordinals = _gpus(reading), _cuda_devices(reading)
    known = [ordinals.get((pid, ordinal)) or gpus.get(ordinal, (None, None)) for pid, ordinal in devices]
    columns = {
        "host": [host] * len(devices),
        "pid": [pid for pid, _ in devices],
        "ordinal": [ordinal for _, ordinal in devices],
        "name": [name for name, _ in known],
        "uuid": [uuid for _, uuid in known],
        "source": [0] * len(devices),
    }
    return model.table("devices", columns, len(devices))


def _kernels(reading: Reading) -> DeviceRows:
    more = (*_NAMES, "registersPerThread", *_GRID, *_BLOCK, "staticSharedMemory", "dynamicSharedMemory", "graphNodeId")
    data = reading.rows(ns.KERNEL, _REQUIRED, (*_OPTIONAL, *more))
    data = reading.keep(data, numbers(data, "start") > 0, f"{ns.KERNEL} without a start time")
    extra = {
        "registers": reading.int32(data["registersPerThread"]),
        "shared_bytes": reading.int32(_sum(data["dynamicSharedMemory"], data["staticSharedMemory"])),
        "graph_node": data["graphNodeId"],
    }
    triples = {"grid": _triple(reading, data, _GRID), "block": _triple(reading, data, _BLOCK)}
    return DeviceRows(data, "kernel", _kernel_names(reading, data), extra, triples)


def _kernel_names(reading: Reading, data: pa.Table) -> Labels:
    first, *others = (reading.strings.lookup(data[n]) for n in _NAMES)
    for other in others:
        first = first.fallback(other)
    ids = pc.if_else(pa.array(first.codes < 0), data[_NAMES[0]], pa.scalar(None, pa.int64()))
    return first.fallback(reading.strings.lookup(ids, "[string {}]")).fallback(constant("[unknown kernel]", len(data)))


def _copies(reading: Reading) -> DeviceRows:
    data = reading.rows(ns.MEMCPY, _REQUIRED, (*_OPTIONAL, "bytes", "copyKind", "graphNodeId"))
    kind = numbers(data, "copyKind")
    names = [f"[CUDA memcpy {k}]" for k in ns.COPY_KINDS]
    code = np.where((kind < 0) | (kind >= len(names)), 0, kind)
    return DeviceRows(data, "memcpy", Labels(code, names), {"bytes": data["bytes"], "graph_node": data["graphNodeId"]})


def _fills(reading: Reading) -> DeviceRows:
    data = reading.rows(ns.MEMSET, _REQUIRED, (*_OPTIONAL, "bytes", "graphNodeId"))
    extra = {"bytes": data["bytes"], "graph_node": data["graphNodeId"]}
    return DeviceRows(data, "memset", constant("[CUDA memset]", len(data)), extra)


def _graphs(reading: Reading) -> DeviceRows:
    data = reading.rows(ns.GRAPH_TRACE, _REQUIRED, (*_OPTIONAL, "graphId", "graphExecId"))
    ids = pc.coalesce(data["graphId"], data["graphExecId"]).dictionary_encode().combine_chunks()
    ids = ids if isinstance(ids, pa.DictionaryArray) else pa.array([], pa.int64()).dictionary_encode()
    name = Labels(ids.indices.fill_null(model.NULL).to_numpy(), [f"CUDA graph {i}" for i in ids.dictionary.to_pylist()])
    if len(data):
        reading.note("opaque-graphs", f"{len(data)} CUDA-graph executions hide their kernels; record with "
                     "--cuda-graph-trace=node to see them", len(data))  # fmt: skip
    return DeviceRows(data, "graph", name.fallback(constant("CUDA graph", len(data))), {"graph_node": data["graphId"]})


def _triple(reading: Reading, data: pa.Table, names: Sequence[str]) -> np.ndarray:
    """Sizes, shape (rows, 3) int32; -1 in rows in which one is not known."""
    columns = [reading.int32(data[n]) for n in names]
    found = np.stack([c.fill_null(0).to_numpy() for c in columns], axis=1)
    found[np.logical_or.reduce([c.is_null().to_numpy() for c in columns])] = model.NULL
    return found


def _sum(*columns: pa.ChunkedArray) -> pa.ChunkedArray:
    """Sum of what is known; null where nothing is."""
    total = pc.add(*(c.fill_null(0) for c in columns))
    known = pc.or_(*(c.is_valid() for c in columns))
    return pc.if_else(known, total, pa.scalar(None, pa.int64()))


def _stack(parts: Sequence[DeviceRows], name: str) -> pa.Array:
    kind = model.schema("device").field(name).type
    return pa.concat_arrays([flat(p.extra.get(name, pa.nulls(len(p.data), kind))) for p in parts])


def _stack_triples(parts: Sequence[DeviceRows], name: str, order: np.ndarray) -> pa.FixedSizeListArray:
    """Sizes of all rows in a given order, which Arrow would take twenty times as long to put them in."""
    none = (np.full((len(p.data), 3), model.NULL, np.int32) for p in parts)
    found = np.concatenate([p.triples.get(name, n) for p, n in zip(parts, none, strict=True)])[order]
    return model.triples(found, found[:, 0] == model.NULL)


def _number_devices(process: np.ndarray, ordinal: np.ndarray) -> tuple[np.ndarray, list[tuple[int, ...]]]:
    group, found = distinct(process, ordinal)
    devices = sorted(found)
    return np.array([devices.index(d) for d in found], np.int32)[group], devices


def _gpus(reading: Reading) -> dict[int, tuple[str | None, str | None]]:
    """Name and UUID by CUDA ordinal, of exports that do not say it per process."""
    data = reading.db.fetch(ns.GPU, ("id", "deviceId", "cuDevice"), ("name", "uuid"))
    ordinal = pc.coalesce(data["cuDevice"], data["id"], data["deviceId"])
    return _identities(ordinal.to_pylist(), data)


def _cuda_devices(reading: Reading) -> dict[tuple[int, int], tuple[str | None, str | None]]:
    """Name and UUID by process and CUDA ordinal."""
    gpus = reading.db.fetch(ns.GPU, ("id",), ("name", "uuid"))
    by_id = _identities(gpus["id"].to_pylist(), gpus)
    rows = reading.db.fetch(ns.CUDA_DEVICE, ("pid", "cudaId", "gpuId"), ("uuid",)).to_pylist()
    known = {(r["pid"], r["cudaId"]): (by_id.get(r["gpuId"], (None, None)), r["uuid"]) for r in rows}
    return {key: (name, _uuid(own) or uuid) for key, ((name, uuid), own) in known.items()}


def _identities(keys: Sequence[int | None], data: pa.Table) -> dict[int, tuple[str | None, str | None]]:
    rows = zip(keys, data["name"].to_pylist(), data["uuid"].to_pylist(), strict=True)
    return {key: (name or None, _uuid(uuid)) for key, name, uuid in rows if key is not None}


def _uuid(text: str | None) -> str | None:
    bare = (text or "").removeprefix("GPU-")
    return None if not bare or bare == _NO_UUID else f"GPU-{bare}"
