"""Single executions of kernels: how long they take, and with what launch configuration they ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.analyze.busy import event_purposes
from tprof.analyze.devices import device_label
from tprof.analyze.rows import percentile
from tprof.events import PURPOSES
from tprof.intervals import NONE, summed
from tprof.model import Trace, codes, first_rows, int3, ints, refine

if TYPE_CHECKING:
    from tprof.analyze.result import Row

_BINS: Final = 24


@dataclass(frozen=True)
class Groups:
    """Durations sorted within their group."""

    first: np.ndarray  # first member of each group, in the order given
    begin: np.ndarray
    count: np.ndarray
    duration: np.ndarray

    @classmethod
    def of(cls, key: np.ndarray, duration: np.ndarray) -> Groups:
        """From the group of each execution, as `refine` numbers them, and its duration; shape (executions,)."""
        count = np.bincount(key)
        if len(count) < 1 << 19 and duration.max(initial=0) < 1 << 44:  # one number of both sorts ten times as fast
            duration = np.sort(key << 44 | duration) & (1 << 44) - 1
        else:
            duration = duration[np.lexsort((duration, key))]
        return cls(first_rows(key), np.cumsum(count) - count, count, duration)

    def figures(self, group: int) -> Row:
        """Calls, total and percentiles (nearest rank) of one group."""
        own = self.duration[self.begin[group] : self.begin[group] + self.count[group]]
        n = len(own)
        return {
            "calls": n,
            "total_ns": int(own.sum()),
            "min_ns": int(own[0]),
            "median_ns": (int(own[(n - 1) // 2]) + int(own[n // 2])) // 2,
            "p99_ns": percentile(own, 99),
            "max_ns": int(own[-1]),
        }


def launch_rows(trace: Trace, rows: np.ndarray) -> list[Row]:
    """One row per launch configuration and purpose of some device events, the most device time first.

    Args:
        trace: with purposes.
        rows: of `device`.
    """
    device, purpose = trace.device, event_purposes(trace)[rows]
    name, names = codes(device, "name")
    shared, on = ints(device, "shared_bytes")[rows], ints(device, "device")[rows]
    registers, sizes = ints(device, "registers")[rows], [int3(device, c)[rows] for c in ("grid", "block")]
    key = np.zeros(len(rows), np.int64)
    for part in (name[rows], purpose, on, registers, shared, *sizes[0].T, *sizes[1].T):
        key = refine(key, part.astype(np.int64))
    groups = Groups.of(key, (ints(device, "end_ns") - ints(device, "start_ns"))[rows])
    found = [
        {
            "name": names[name[rows[i]]],
            "purpose": PURPOSES[purpose[i]],
            "device": device_label(trace, int(on[i])),
            **{label: _size(size[i]) for label, size in zip(("grid", "block"), sizes, strict=True)},
            "registers": None if registers[i] == NONE else int(registers[i]),
            "shared_bytes": None if shared[i] == NONE else int(shared[i]),
            **groups.figures(g),
        }
        for g, i in enumerate(groups.first.tolist())
    ]
    return sorted(found, key=lambda row: -row["total_ns"])


def _size(size: np.ndarray) -> str | None:
    """`8x8x1`; None where the producer does not say."""
    return None if size[0] == NONE else "x".join(map(str, size.tolist()))


def duration_rows(trace: Trace, rows: np.ndarray) -> list[Row]:
    """How many executions lie in each range of durations; ranges grow by a constant factor from the least to the most.

    Returns:
        Rows of from_ns (inclusive), below_ns, calls, total_ns, and calls by purpose.
    """
    duration = (ints(trace.device, "end_ns") - ints(trace.device, "start_ns"))[rows]
    if not len(rows):
        return []
    low, high = max(int(duration.min()), 1), int(duration.max()) + 1
    edges = np.unique(np.round(np.geomspace(low, max(high, low + 1), _BINS + 1)).astype(np.int64))
    place = np.clip(np.searchsorted(edges, duration, "right") - 1, 0, len(edges) - 2)
    shape = len(edges) - 1, len(PURPOSES)
    calls = np.bincount(place * shape[1] + event_purposes(trace)[rows], minlength=shape[0] * shape[1]).reshape(shape)
    total = summed(place, duration, shape[0])
    return [
        {
            "from_ns": int(edges[i]),
            "below_ns": int(edges[i + 1]),
            "calls": int(calls[i].sum()),
            "total_ns": int(total[i]),
            **dict(zip(PURPOSES, calls[i].tolist(), strict=True)),
        }
        for i in range(shape[0])
    ]
