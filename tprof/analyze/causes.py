"""What was cold in a request: by kernel and shape, so that the shape that caused it can be named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tprof.align.ranges import by_thread
from tprof.events import COLD_PHASES
from tprof.intervals import NONE
from tprof.model import codes, refine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tprof.analyze.census import Census
    from tprof.analyze.result import Row

Stretch = tuple[int, int, int]  # thread, begin, end


class Causes:
    """Cold stretches of a trace by thread, to be asked request by request."""

    def __init__(self, census: Census) -> None:
        self._census = census
        charges, calls = census.charges, census.calls
        kernel, self._kernels = codes(census.trace.spans, "kernel")
        self._kernel = kernel[charges.row]
        self._key = np.append(calls.key, NONE)[charges.call]
        self._group = refine(self._kernel.astype(np.int64), self._key)
        self._by_thread = {
            on: rows[np.argsort(charges.start[rows], kind="stable")] for on, rows in by_thread(charges.thread)
        }

    def of(self, stretches: Iterable[Stretch]) -> list[Row]:
        """Cold thread time in some stretches, most first: `kernel`, `label`, `shape`, `bucket`, `cold_ns`, `phases`.

        A null kernel is what no single kernel can be charged with, a null shape what no call followed.
        """
        charges = self._census.charges
        found, spent = [], []
        for thread, low, high in stretches:
            rows = self._by_thread.get(thread, np.zeros(0, np.int64))
            rows = rows[np.searchsorted(charges.end[rows], low, "right") : np.searchsorted(charges.start[rows], high)]
            found.append(rows)
            spent.append(np.minimum(charges.end[rows], high) - np.maximum(charges.start[rows], low))
        at, ns = np.concatenate(found), np.concatenate(spent)
        causes = [self._cause(at[mine], ns[mine]) for mine in self._groups(at)]
        return sorted(causes, key=lambda row: -row["cold_ns"])

    def _groups(self, at: np.ndarray) -> list[np.ndarray]:
        group = self._group[at]
        return [np.flatnonzero(group == g) for g in np.unique(group)]

    def _cause(self, at: np.ndarray, ns: np.ndarray) -> Row:
        kernel, key = int(self._kernel[at[0]]), int(self._key[at[0]])
        spent = np.bincount(self._census.charges.phase[at], ns, len(COLD_PHASES)).astype(np.int64)
        return {
            "kernel": None if kernel == NONE else self._kernels[kernel],
            "label": None if key == NONE else self._census.labels[key],
            "shape": None if key == NONE else self._census.calls.keys[key].shape,
            "bucket": None if key == NONE else self._census.buckets[key],
            "cold_ns": int(spent.sum()),
            "phases": {COLD_PHASES[i]: int(spent[i]) for i in np.argsort(-spent, kind="stable") if spent[i]},
        }
