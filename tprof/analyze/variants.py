"""What a timed candidate was on the device: grid, block, registers, spills, shared memory, and how many blocks fit."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tprof.align.calls import is_kind
from tprof.analyze.occupancy import occupancy, waves
from tprof.analyze.rows import recorded_spans
from tprof.intervals import NONE
from tprof.model import Trace, codes, int3, ints

if TYPE_CHECKING:
    import pyarrow as pa

    from tprof.analyze.result import Row
    from tprof.analyze.tunings import Tuning

_WARPS = re.compile(r"num_warps: (\d+)")
_GRID = re.compile(r"grid (\d+(?:x\d+)*)")
_UNKNOWN = ("blocks", "threads", "registers", "spills", "shared_bytes")


@dataclass(frozen=True)
class Gpu:
    """A device model: its compute capability, and its multiprocessors where a profiler said how many."""

    capability: tuple[int, int]
    multiprocessors: int | None


def _the_gpu(trace: Trace) -> Gpu | None:
    """The model of the trace's devices; None where nothing says, or there are several."""
    sources: Any = trace.meta.get("sources", [trace.meta])
    seen = [gpu for meta in sources for gpu in meta.get("gpus") or []]
    models = {(g["major"], g.get("minor", 0)) for g in seen if "major" in g}
    counts = {g["sm_count"] for g in seen if g.get("sm_count")}
    if len(models) != 1 or len(counts) > 1:
        return None
    return Gpu(models.pop(), counts.pop() if counts else None)


class Variants:
    """Looks up what each candidate of a trace was."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self.gpu = _the_gpu(trace)
        self._shared = {row["hash"]: row["shared_bytes"] for row in trace.specializations.to_pylist() if row["hash"]}
        self._loads = recorded_spans(trace, "load")
        self._known: dict[tuple[int, str, str], Row] = {}  # by pid, kernel and configuration: what its load said

    def facts(self, tuning: Tuning, candidate: Row) -> Row:
        """Of one candidate; call it in time order, since a variant is loaded once. What is not known is None."""
        found: Row = dict.fromkeys(_UNKNOWN) | self._loaded(tuning, candidate) | self._launched(candidate)
        if found["threads"] is None and (warps := _WARPS.search(candidate["config"] or "")):
            found["threads"] = 32 * int(warps[1])
        return found | self._fit(found) | {"device_mean_ns": _device_mean(candidate)}

    def _loaded(self, tuning: Tuning, candidate: Row) -> Row:
        """What its module load said, or that of the same configuration before: then the variant was there already."""
        place = (tuning.pid, tuning.kernel, candidate["config"] or "")
        for load in self._loads:
            inside = candidate["start_ns"] <= load["start_ns"] < candidate["end_ns"]
            if inside and load["thread"] == candidate["thread"] and load["name"] == tuning.kernel:
                said = load["attrs"]
                facts = {"registers": said.get("registers"), "spills": said.get("spills")}
                self._known[place] = facts | {"shared_bytes": self._shared.get(said.get("hash"))}
        return self._known.get(place, {}) if candidate["config"] else {}

    def _launched(self, candidate: Row) -> Row:
        """What its first execution shows, else its first recorded launch."""
        name, names = self._names
        kernel = names.index(candidate["kernel"]) if candidate["kernel"] in names else len(names)
        rows = _during(candidate, self._events)
        if len(rows := rows[name[rows] == kernel]):
            return _shown(self._trace.device.slice(int(rows[0]), 1))
        rows = _during(candidate, self._launches)
        key = str(self._trace.host["shape_key"][int(rows[0])].as_py()) if len(rows) else ""
        grid = _GRID.search(key)
        return {"blocks": prod(int(n) for n in grid[1].split("x"))} if grid else {}

    @cached_property
    def _names(self) -> tuple[np.ndarray, list[str]]:
        return codes(self._trace.device, "name")

    @cached_property
    def _launches(self) -> _ByLaunch:
        """Recorded launches: rows of `host`."""
        rows = np.flatnonzero(is_kind(self._trace.host, "launch"))
        return _by_launch(self._trace, rows, rows)

    @cached_property
    def _events(self) -> _ByLaunch:
        """Executions whose launch is known: rows of `device`."""
        launch = ints(self._trace.device, "launch")
        rows = np.flatnonzero(launch != NONE)
        return _by_launch(self._trace, rows, launch[rows])

    def _fit(self, facts: Row) -> Row:
        """Blocks on a multiprocessor, what limits them, and how often the device is filled."""
        gpu, fit = self.gpu, None
        if gpu and facts["threads"]:
            fit = occupancy(gpu.capability, facts["threads"], facts["registers"], facts["shared_bytes"])
        if gpu is None or fit is None:
            return dict.fromkeys(("blocks_per_sm", "limited_by", "occupancy_share", "waves"))
        filled = waves(facts["blocks"], fit.blocks, gpu.multiprocessors or 0) if facts["blocks"] else None
        limits = {"blocks_per_sm": fit.blocks, "limited_by": fit.limited_by, "occupancy_share": fit.share}
        return limits | {"waves": filled}


_ByLaunch = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows of a table, when each was launched, and by which thread


def _by_launch(trace: Trace, rows: np.ndarray, launch: np.ndarray) -> _ByLaunch:
    """Of rows and the row of `host` that launched each, in order of their launches."""
    start, thread = ints(trace.host, "start_ns")[launch], ints(trace.host, "thread")[launch]
    order = np.argsort(start, kind="stable")
    return rows[order], start[order], thread[order]


def _during(candidate: Row, launched: _ByLaunch) -> np.ndarray:
    """Rows that its thread launched during a candidate."""
    rows, start, thread = launched
    at = slice(*np.searchsorted(start, (candidate["start_ns"], candidate["end_ns"])))
    return rows[at][thread[at] == candidate["thread"]]


def _device_mean(candidate: Row) -> int | None:
    """Mean device time of a launch, ns."""
    known = candidate["device_ns"] and candidate["launches"]
    return round(candidate["device_ns"] / candidate["launches"]) if known else None


def _shown(event: pa.Table) -> Row:
    """What a device event of one row says of its kernel."""
    grid, block = int3(event, "grid")[0], int3(event, "block")[0]
    sizes = {"blocks": int(grid.prod()), "threads": int(block.prod())} if (grid > 0).all() else {}
    said = {key: event[key][0].as_py() for key in ("registers", "shared_bytes")}
    return sizes | {key: value for key, value in said.items() if value is not None}
