"""Warnings about what an Nsight export does not hold: lost rows, missing names, launches without kernels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tprof.read import nsight_meta
from tprof.read.nsight_rows import Reading, numbers, pids

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.read.nsight_device import DeviceRows
    from tprof.read.nsight_host import HostRows

_GRAPH_LAUNCHES = ("cudaGraphLaunch", "cuGraphLaunch")
_SHOWN = 5  # process ids that a message lists


def check(reading: Reading, calls: HostRows, ranges: HostRows, work: Sequence[DeviceRows]) -> None:
    """Add the notes that need the whole export: call it last."""
    nsight_meta.check_schema(reading)
    _note_lost(reading)
    _check_kernels(reading, calls, ranges, work)
    _check_graph_launches(reading, calls, work)


def _note_lost(reading: Reading) -> None:
    if total := reading.dropped.total():
        reasons = "; ".join(f"{n} {reason}" for reason, n in sorted(reading.dropped.items()))
        reading.note("dropped-rows", f"{total} rows were left out: {reasons}", total)
    if bad := reading.db.bad_values:
        reading.note("bad-values", f"{bad} cells hold no number where a number belongs; they count as missing", bad)
    if bad := reading.db.bad_texts:
        reading.note("not-utf8", f"{bad} names are not valid UTF-8; their bad bytes are replaced by U+FFFD", bad)
    if missing := reading.strings.missing:
        reading.note("missing-strings", f"{missing} rows name a string that StringIds does not have", missing)


def _check_kernels(reading: Reading, calls: HostRows, ranges: HostRows, work: Sequence[DeviceRows]) -> None:
    launching = {p for part in work if part.kind in ("kernel", "graph") for p in _pids(part)}
    active = set(np.unique(pids(np.concatenate([calls.gtid, ranges.gtid]))).tolist())
    if not launching:
        reading.note("no-kernels", "the capture has no kernel; was CUDA traced (-t cuda) and a GPU used?")
    elif idle := sorted(active - launching):
        shown = ", ".join(map(str, idle[:_SHOWN])) + (" ..." if len(idle) > _SHOWN else "")
        reading.note("process-without-kernels", f"{len(idle)} processes have CUDA calls or NVTX ranges but no kernel "
                     f"({shown}); if they forked, record with --trace-fork-before-exec=true", len(idle))  # fmt: skip


def _pids(part: DeviceRows) -> list[int]:
    found: list[int] = np.unique(pids(numbers(part.data, "globalPid"))).tolist()
    return found


def _check_graph_launches(reading: Reading, calls: HostRows, work: Sequence[DeviceRows]) -> None:
    """Without device rows of its graph launches a busy device looks idle."""
    launches = [i for i, v in enumerate(calls.name.values) if v.startswith(_GRAPH_LAUNCHES)]
    is_launch = np.isin(calls.name.codes, launches)
    if not is_launch.any() or calls.correlation is None:
        return
    launched = _keys(pids(calls.gtid[is_launch]), calls.correlation.filter(is_launch).fill_null(-1).to_numpy())
    ran = np.concatenate(
        [_keys(pids(numbers(p.data, "globalPid")), numbers(p.data, "correlationId", -1)) for p in work]
    )
    if count := int((~np.isin(launched, ran)).sum()):
        reading.note("graph-launches-without-kernels", f"{count} CUDA-graph launches have no device row; "
                     "the device's idle time is unreliable", count)  # fmt: skip


def _keys(process: np.ndarray, correlation: np.ndarray) -> np.ndarray:
    return (process << 32) | (correlation & 0xFFFFFFFF)
