"""What a request's budget does not say: what caused its cold time, its buckets, its first token, its source."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.calls import is_kind
from tprof.align.ranges import by_thread
from tprof.analyze.rows import labelled
from tprof.events import COLD_PHASES
from tprof.intervals import NONE, summed
from tprof.model import codes, ints, refine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tprof.analyze.census import Census
    from tprof.analyze.result import Row

Stretch = tuple[int, int, int]  # thread, begin, end
_FIRST_TOKEN: Final = "*first_token*"  # noqa: S105  a range inside a request that ends, or a mark, with its first token


class Details:
    """Asked request by request."""

    def __init__(self, census: Census) -> None:
        self._census, self._trace = census, census.trace
        self._causes = Causes(census)
        host = census.trace.host
        self._start, self._end, self._thread, self._request = (
            ints(host, c) for c in ("start_ns", "end_ns", "thread", "request")
        )
        self._calls = np.flatnonzero(census.kept & ~census.calls.tuning)
        order = np.argsort(census.request[self._calls], kind="stable")
        self._calls = self._calls[order]
        self._served = census.request[self._calls]

    def of(self, row: int, budget: Row, stretches: list[Stretch]) -> Row:
        """Further columns of one request.

        Args:
            row: of `host`.
            budget: its row of `request_budgets`.
            stretches: in which threads served it.
        """
        return {
            **self._source(row),
            "device_work_ns": budget["device_by_purpose"].get("work", 0) if self._trace.device.num_rows else None,
            "first_token_ns": self._first_token(row, stretches),
            "cause": _cause(budget),
            "causes": self._causes.of(stretches),
            **self._shapes(row),
        }

    def _source(self, row: int) -> Row:
        """Path of the source, where there are several."""
        if self._trace.sources.num_rows == 1:
            return {}
        source = self._sources[self._thread[row]]
        return {"source": None if source == NONE else self._trace.sources["path"][int(source)].as_py()}

    @cached_property
    def _sources(self) -> np.ndarray:
        return ints(self._trace.threads, "source")

    def _shapes(self, row: int) -> Row:
        """Calls of compiled kernels, those for which something was cold, and the buckets of their shapes."""
        census = self._census
        own = self._calls[slice(*np.searchsorted(self._served, (row, row + 1)))]
        buckets = {b for key in np.unique(census.calls.key[own]).tolist() if (b := census.buckets[key]) is not None}
        return {"kernel_calls": len(own), "misses": int(census.cold[own].sum()), "buckets": sorted(buckets)}

    @cached_property
    def _tokens(self) -> np.ndarray:
        """Rows of `host` that say when a first token was ready."""
        host = self._trace.host
        named = labelled(host, "name", lambda name: fnmatchcase(name.lower(), _FIRST_TOKEN))
        return np.flatnonzero(named & is_kind(host, "range", "startend", "mark"))

    def _first_token(self, row: int, stretches: list[Stretch]) -> int | None:
        """From the request's begin to its first token, ns; None where nothing says when that was."""
        at = self._tokens
        own = self._request[at] == row
        for thread, low, high in stretches:
            own |= (self._thread[at] == thread) & (self._start[at] >= low) & (self._end[at] <= high)
        return int(self._end[at[own]].min() - self._start[row]) if own.any() else None


def _cause(budget: Row) -> str | None:
    """The cold phase that took most of a request; `autotune` where it only waited for a device that tuned."""
    phase = next((p for p in budget["phases"] if p in COLD_PHASES), None)  # largest first
    return phase or ("autotune" if budget["cold_tax_ns"] else None)


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
        group = self._group[at]
        causes = [self._cause(at[group == g], ns[group == g]) for g in np.unique(group)]
        return sorted(causes, key=lambda row: -row["cold_ns"])

    def _cause(self, at: np.ndarray, ns: np.ndarray) -> Row:
        kernel, key = int(self._kernel[at[0]]), int(self._key[at[0]])
        spent = summed(self._census.charges.phase[at], ns, len(COLD_PHASES))
        return {
            "kernel": None if kernel == NONE else self._kernels[kernel],
            "label": None if key == NONE else self._census.labels[key],
            "shape": None if key == NONE else self._census.calls.keys[key].shape,
            "bucket": None if key == NONE else self._census.buckets[key],
            "cold_ns": int(spent.sum()),
            "phases": {COLD_PHASES[i]: int(spent[i]) for i in np.argsort(-spent, kind="stable") if spent[i]},
        }
