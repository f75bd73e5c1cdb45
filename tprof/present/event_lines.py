"""Rows of a table as lines of trace-event JSON. Arrow joins them, a block at a time: no event is a Python object."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tprof.intervals import NONE
from tprof.model import codes, int3, ints, numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK: Final = 1 << 17  # rows
_CATEGORY: Final = {
    "op": "cpu_op", "range": "user_annotation", "python": "python_function", "overhead": "overhead",
    "runtime": "cuda_runtime", "driver": "cuda_driver", "osrt": "osrt", "cold": "tprof_cold", "launch": "tprof_launch",
    "startend": "range", "request": "request", "serve": "request", "mark": "mark", "flow": "ac2g",
    "phase": "tprof_phase", "kernel": "kernel", "graph": "kernel", "memcpy": "gpu_memcpy", "memset": "gpu_memset",
}  # fmt: skip
_NUMBERS: Final = {
    "linked": "correlation", "external_id": "External id", "ordinal": "device", "context": "context",
    "stream": "stream", "registers": "registers per thread", "shared_bytes": "shared memory", "bytes": "bytes",
    "graph_node": "graph node id",
}  # fmt: skip
_TEXTS: Final = {
    "shape_key": "shape key", "kernel": "kernel", "domain": "domain", "purpose": "purpose", "path": "path",
    "purpose_basis": "purpose basis", "basis": "basis",
}  # fmt: skip
_MORE: Final = {"i": ',"s":"t"', "f": ',"bp":"e"'}  # a mark belongs to its thread; a flow ends at the slice around it


def placed(data: pa.Table, pid: np.ndarray, tid: np.ndarray, **more: Any) -> pa.Table:
    """A table with the process and track of each row, its row number, and more columns."""
    more = {"on_pid": numbers(pid.astype(np.int64)), "on_tid": numbers(tid.astype(np.int64))} | more
    for name, column in ({"row": numbers(np.arange(data.num_rows))} | more).items():
        data = data.append_column(name, column)
    return data


def lines(data: pa.Table, letter: str, origin: int, at: str = "start_ns") -> Iterator[memoryview]:
    """Lines of a `placed` table.

    Args:
        data: has at least `kind`, `name`, `on_pid`, `on_tid`, `row` and the column `at`.
        letter: the kind of event: X a slice, b and e the ends of a free range, s and f those of a flow, i an instant.
        origin: ns that become time zero.
        at: column of the event's time, ns.
    """
    for first in range(0, data.num_rows, _BLOCK):
        block = data.slice(first, _BLOCK)
        text = pc.binary_join_element_wise(*_fields(block, letter, origin, at), "", null_handling="skip")
        _, offsets, content = text.combine_chunks().buffers() if isinstance(text, pa.ChunkedArray) else text.buffers()
        yield memoryview(content)[: np.frombuffer(offsets, np.int32)[len(text)]]


def _fields(data: pa.Table, letter: str, origin: int, at: str) -> list[Any]:
    """The texts that make up each line: one per row, or one for all; a null is left out."""
    start, have = ints(data, at), set(data.column_names)
    found = [f'{{"ph":"{letter}"', _strings("cat", data, "kind", _CATEGORY), _strings("name", data, "name")]
    found += [
        _integers("pid", ints(data, "on_pid")),
        _integers("tid", ints(data, "on_tid")),
        _instants("ts", start - origin),
    ]
    if letter == "X":
        found.append(_instants("dur", ints(data, "end_ns") - start))
    if letter in "besf":
        found.append(_integers("id", ints(data, "row")))
    found += [_MORE.get(letter, ""), ',"args":{"row":', _text(ints(data, "row"))]
    found += [_integers(key, ints(data, name), NONE) for name, key in _NUMBERS.items() if name in have]
    found += [_strings(key, data, name) for name, key in _TEXTS.items() if name in have]
    found += [_triples(name, data) for name in ("grid", "block") if name in have]
    if "attrs" in have:
        found.append(
            pc.binary_join_element_wise(',"attrs":', data["attrs"].combine_chunks(), "", null_handling="emit_null")
        )
    return [*found, "}},\n"]


def _text(values: np.ndarray) -> pa.Array:
    return pc.cast(numbers(values), pa.string())


def _integers(key: str, values: np.ndarray, null: int | None = None) -> pa.Array:
    """`,"key":value` per row; null where it is not known."""
    known = numbers(values, None if null is None else values == null)
    return pc.binary_join_element_wise(f',"{key}":', pc.cast(known, pa.string()), "", null_handling="emit_null")


def _instants(key: str, ns: np.ndarray) -> pa.Array:
    """`,"key":microseconds` with three decimals."""
    whole, rest = np.divmod(ns, 1000)
    return pc.binary_join_element_wise(f',"{key}":', _text(whole), ".", pc.utf8_lpad(_text(rest), 3, "0"), "")


def _strings(key: str, data: pa.Table, column: str, change: dict[str, str] | None = None) -> pa.Array:
    """`,"key":"text"` per row, each distinct text spelled once; null where there is none."""
    code, values = codes(data, column)
    texts = [f',"{key}":{json.dumps((change or {}).get(v, v))}' for v in values]
    return pa.array(texts, pa.string()).take(numbers(code, code == NONE))


def _triples(key: str, data: pa.Table) -> pa.Array:
    """`,"key":[x,y,z]` per row; null where it is not known."""
    values = int3(data, key).astype(np.int64)
    x, y, z = map(_text, values.T)
    text = pc.binary_join_element_wise(f',"{key}":[', x, ",", y, ",", z, "]", "")
    return pc.if_else(numbers(values[:, 0] == NONE), pa.scalar(None, pa.string()), text)
