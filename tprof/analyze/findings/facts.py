"""What findings are made from, computed once; and how a finding is written."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tprof.align.ranges import process_of
from tprof.analyze.devices import device_label
from tprof.analyze.result import few
from tprof.analyze.rows import cold_spans, recorded_spans, rows_inside
from tprof.analyze.tunings import Tuning, tunings
from tprof.intervals import clip, intersect, total, union
from tprof.model import Trace, codes, ints

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tprof.analyze.attribution import Attribution
    from tprof.analyze.busy import Set
    from tprof.analyze.result import Row

MATTERS: Final = 0.01  # of its whole; less is not worth a line
_MS: Final = 1_000_000
_US: Final = 1_000


@dataclass(frozen=True)
class Facts:
    """One question's answers so far.

    Attributes:
        attribution: of the whole trace.
        window: (start, end) in ns that the question is about.
        devices: rows of `summary`.
        cold: totals of the cold start.
        requests: budgets of all requests in the window.
        kernels: kernel rows, all purposes.
    """

    attribution: Attribution
    window: tuple[int, int]
    devices: list[Row]
    cold: Row
    requests: list[Row]
    kernels: list[Row]

    @property
    def trace(self) -> Trace:
        """The trace."""
        return self.attribution.trace

    @property
    def wall_ns(self) -> int:
        """Length of the window."""
        return self.window[1] - self.window[0]

    @property
    def calls(self) -> np.ndarray:
        """Class of the device API call that each host row is."""
        return self.attribution.timelines.calls

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Row of `devices` of each device that did anything, by its label in `devices`."""
        return {device_label(self.trace, device): device for device in self.attribution.events}

    @cached_property
    def tunings(self) -> list[Tuning]:
        """Searches of autotuners that end in the window."""
        return tunings(self.trace, self.window)

    @cached_property
    def served(self) -> Set:
        """Instants of the window at which any request was being served."""
        return self.during(self.requests)

    @cached_property
    def spans(self) -> list[Row]:
        """Exclusive cold spans that reach into the window, clipped to it."""
        return cold_spans(self.trace, self.window)

    @cached_property
    def compiles(self) -> list[Row]:
        """First uses that end in the window, with the number of their process, and their hash where recorded."""
        process, hashes = process_of(self.trace), [*self.trace.specializations["hash"].to_pylist(), None]
        return [
            {**r, "process": int(process[r["thread"]]), "hash": hashes[-1 if (s := r["specialization"]) is None else s]}
            for r in rows_inside(self.trace, "compiles", self.window)
        ]

    def recorded(self, kind: str) -> list[Row]:
        """The recorder's cold spans of a kind that end in the window."""
        low, high = self.window
        return [s for s in self._recorded if s["kind"] == kind and low < s["end_ns"] <= high]

    @cached_property
    def _recorded(self) -> list[Row]:
        return recorded_spans(self.trace)

    def during(self, requests: Iterable[Row]) -> Set:
        """Instants of the window at which any of these requests was being served."""
        return self.set_of((r["start_ns"], r["start_ns"] + r["wall_ns"]) for r in requests)

    def set_of(self, stretches: Iterable[tuple[int, int]]) -> Set:
        """Their union inside the window."""
        pairs = np.array(list(stretches), np.int64).reshape(-1, 2)
        return union(*clip(pairs[:, 0], pairs[:, 1], *self.window))

    def spent(self, rows: Iterable[Row]) -> Set:
        """Instants of the window that rows with a begin and an end cover."""
        return self.set_of((row["start_ns"], row["end_ns"]) for row in rows)

    def times(self, table: str) -> Set:
        """Begin and end of every row of a table."""
        data = getattr(self.trace, table)
        return ints(data, "start_ns"), ints(data, "end_ns")

    def most(self, rows: np.ndarray, number: int) -> str:
        """The most frequent names of some rows of `host`, with their number."""
        code, names = codes(self.trace.host, "name")
        return few(f"{names[c]} ({n:,})" for c, n in Counter(code[rows].tolist()).most_common(number))

    def finding(self, code: str, title: str, cost: Set | int, **rest: Any) -> Row:
        """One row.

        Args:
            code: stable, dashed, for programs.
            title: what is wrong, in a few words.
            cost: the instants that it cost, or ns of them.
            rest: of (what the cost is a share of, and its length; default: the window), kernel, shape_key, why, fix,
                basis, count (how many things it sums up), window (where to look; default: from the first to the last
                instant of the cost, else the whole window).
        """
        ns = cost if isinstance(cost, int) else total(*cost)
        spread = None if isinstance(cost, int) or not ns else (int(cost[0][0]), int(cost[1][-1]))
        low, high = rest.pop("window", None) or spread or self.window
        of, of_ns = rest.pop("of", ("window", self.wall_ns))
        head = {"code": code, "title": title, "cost_ns": ns, "share": ns / of_ns if of_ns else 0.0, "of": of}
        empty: Row = {"kernel": None, "shape_key": None, "why": None, "fix": None, "basis": "recorded", "count": 1}
        seen = {"start_ns": low, "end_ns": high, "window": self.typed(low, high)}
        return head | empty | rest | seen

    def typed(self, low: int, high: int) -> str:
        """As `--window` takes it: times from the first event of the trace, rounded outwards."""
        unit, name = (_MS, "ms") if high - low >= 10 * _MS else (_US, "us")
        zero = self.attribution.extent[0]
        return f"{max((low - zero) // unit, 0)}{name}:{-((zero - high) // unit)}{name}"


def overlap(a: Set, b: Set) -> Set:
    """Instants of both disjoint sets."""
    return intersect(a, b)[:2]


def inside(a: Set, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """How much of a disjoint set lies in each interval, ns; the intervals may overlap."""
    done = np.concatenate([[0], np.cumsum(a[1] - a[0])])
    first, last = np.searchsorted(a[0], start), np.searchsorted(a[0], end)
    ends = np.append(a[1], 0)  # of the interval before the first: none
    over = [np.where(at > 0, np.maximum(ends[at - 1] - t, 0), 0) for at, t in ((first, start), (last, end))]
    return done[last] - over[1] - done[first] + over[0]


def apart(rows: Iterable[Row], costs: str) -> list[Row]:
    """Of requests that overlap in time the costliest, so that what they wait for together counts once.

    Args:
        rows: with start_ns and wall_ns.
        costs: column that ranks them.
    """
    begins: list[int] = []
    chosen: dict[int, Row] = {}
    for row in sorted((r for r in rows if r["wall_ns"] > 0), key=lambda r: -r[costs]):
        at = bisect_left(begins, row["start_ns"])
        before = chosen[begins[at - 1]] if at else None
        clear = before is None or before["start_ns"] + before["wall_ns"] <= row["start_ns"]
        if clear and (at == len(begins) or begins[at] >= row["start_ns"] + row["wall_ns"]):
            begins.insert(at, row["start_ns"])
            chosen[row["start_ns"]] = row
    return list(chosen.values())


def counted(number: int, noun: str) -> str:
    """`1 request`, `3 requests`."""
    plural = noun[:-1] + "ies" if noun.endswith("y") else noun + ("es" if noun.endswith(("s", "ch")) else "s")
    return f"{number:,} {noun if number == 1 else plural}"
