"""What a request's budget does not say: what caused its cold time, its buckets, its first token, its source."""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.calls import is_kind
from tprof.analyze.causes import Causes
from tprof.events import COLD_PHASES
from tprof.intervals import NONE
from tprof.model import codes, ints

if TYPE_CHECKING:
    from tprof.analyze.causes import Stretch
    from tprof.analyze.census import Census
    from tprof.analyze.result import Row

FIRST_TOKEN: Final = "*first_token*"  # noqa: S105  a range inside a request that ends, or a mark, with its first token


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
        code, names = codes(self._trace.host, "name")
        named = np.array([*(fnmatchcase(name.lower(), FIRST_TOKEN) for name in names), False])
        return np.flatnonzero(named[code] & is_kind(self._trace.host, "range", "startend", "mark"))

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
