"""Launch markers: what the recorder emitted around each launch, in the profiler's own file and so on its own clock.

A marker's name ends in `#` and the id of the launch's shape key; the device API call that it encloses on its thread is
that launch. No clock needs to be aligned for it.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.calls import holds, is_kind
from tprof.align.ranges import open_at
from tprof.intervals import NONE
from tprof.model import Trace, codes, ints, labels, put

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

ShapeIds = dict[tuple[int, int], tuple[str, str]]  # (pid, id) -> (kernel, shape key)
_MARKER: Final = re.compile(r"(?:tprof::)?launch:.*#(\d+)$")
_OURS: Final = "tprof"  # NVTX domain, and prefix of the names, of what the recorder emits


def is_ours(host: pa.Table) -> np.ndarray:
    """Whether each row is a range that the recorder emitted, shape (rows,) bool."""
    return holds(host, "name", lambda name: name.startswith(f"{_OURS}::")) | holds(host, "domain", _OURS.__eq__)


def label_calls(trace: Trace, known: Mapping[tuple[int, int], tuple[str, str]]) -> Trace:
    """Fill `shape_key` and `kernel` of every device API call inside a marker.

    Args:
        trace: a profiler's trace with the markers still in it.
        known: shape keys of the recorded processes.
    """
    host = trace.host
    code, names = codes(host, "name")
    shape_of_name = np.array([_shape_id(n) for n in names] or [NONE])
    markers = np.flatnonzero(is_ours(host) & (shape_of_name[code] != NONE)) if len(code) else np.zeros(0, np.int64)
    calls = np.flatnonzero(is_kind(host, "runtime", "driver"))
    inside = open_at(host, markers, ints(host, "start_ns")[calls], ints(host, "thread")[calls])
    shape = np.full(host.num_rows, NONE)
    shape[calls[inside != NONE]] = shape_of_name[code[inside[inside != NONE]]]
    return replace(trace, host=_labelled(host, ints(host, "pid"), shape, known))


def _shape_id(name: str) -> int:
    found = _MARKER.match(name)
    return int(found[1]) if found else NONE


def _labelled(
    host: pa.Table, pid: np.ndarray, shape: np.ndarray, known: Mapping[tuple[int, int], tuple[str, str]]
) -> pa.Table:
    """The host table with kernels and shape keys of the rows that a marker names."""
    told = np.flatnonzero(shape != NONE)
    pairs, which = np.unique(np.stack([pid[told], shape[told]], axis=1), axis=0, return_inverse=True)
    found = [known.get((int(p), int(i))) for p, i in pairs.tolist()]
    for column, at in (("kernel", 0), ("shape_key", 1)):
        code, values = codes(host, column)
        text = [*values, *("" if f is None else f[at] for f in found)]
        new = np.array([NONE if f is None else len(values) + i for i, f in enumerate(found)], np.int64)
        code = code.astype(np.int64)
        if len(told):
            code[told] = np.where(new[which.reshape(-1)] == NONE, code[told], new[which.reshape(-1)])
        host = put(host, **{column: labels(code, text)})
    return host
