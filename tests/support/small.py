"""Traces of a few rows, written as dictionaries: what a row does not say takes a default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tprof.model import Trace, table

if TYPE_CHECKING:
    from collections.abc import Sequence

MS = 1_000_000
Row = dict[str, Any]
_HOST: Row = {"thread": 0, "pid": 1, "tid": 1, "kind": "runtime"}
_DEVICE: Row = {"device": 0, "pid": 1, "context": 1, "stream": 7, "kind": "kernel", "name": "k"}


def call(start: int, end: int, name: str = "cudaLaunchKernel", **rest: Any) -> Row:
    return {"start_ns": start, "end_ns": end, "name": name, **rest}


def span(start: int, end: int, name: str, kind: str = "range", **rest: Any) -> Row:
    return call(start, end, name, kind=kind, **rest)


def kernel(start: int, end: int, name: str = "k", **rest: Any) -> Row:
    return {"start_ns": start, "end_ns": end, "name": name, **rest}


def trace(host: Sequence[Row] = (), device: Sequence[Row] = (), *, threads: int = 2, format: str = "nsight") -> Trace:  # noqa: A002
    """One process with some threads and one device."""
    return Trace(
        host=_table("host", _HOST, host),
        device=_table("device", _DEVICE, device),
        processes=table("processes", {"host": [""], "pid": [1]}),
        threads=table("threads", {"host": [""] * threads, "pid": [1] * threads, "tid": list(range(1, threads + 1))}),
        devices=table("devices", {"host": [""], "ordinal": [0], "source": [0], "name": ["Test GPU"]}),
        sources=table("sources", {"path": ["small"], "format": [format], "rows_read": [0], "rows_dropped": [0]}),
    )


def _table(name: str, default: Row, rows: Sequence[Row]) -> Any:
    full = [{**default, **row} for row in rows]
    columns = sorted({key for row in full for key in row})
    return table(name, {column: [row.get(column) for row in full] for column in columns}, len(full))


def waiting(first: Row, second: Row, **later: Any) -> Trace:
    """Two kernels 8 ms apart, by the calls that launched them."""
    return trace(
        [first, second], [kernel(20, MS, correlation=1), kernel(9 * MS, 10 * MS, **{"correlation": 2} | later)]
    )


def early(**later: Any) -> Trace:
    """Both calls were over before the gap began."""
    return waiting(call(0, 10, correlation=1), call(20, 30, correlation=2), **later)


def in_one_graph() -> Trace:
    """The later kernel of one graph launch waits for 8 ms."""
    launch = call(0, 10, "cudaGraphLaunch", correlation=1)
    return trace([launch], [kernel(20, MS, correlation=1), kernel(9 * MS, 10 * MS, correlation=1)])


def joined(first: pa.Table, second: pa.Table) -> pa.Table:
    """The rows of one and then of the other."""
    return pa.concat_tables([first, second]).unify_dictionaries().combine_chunks()
