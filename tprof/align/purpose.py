"""Why each device event ran: by the innermost range around its launch that says so, else by inference, else work."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.calls import holds, is_kind
from tprof.align.ranges import open_at
from tprof.events import PURPOSES, Purpose
from tprof.intervals import NONE
from tprof.model import Trace, codes, ints, labels, put

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tprof.align.infer import Inference

# What a range that is mapped to a phase says of the device work launched inside it.
_BY_PHASE: Final[dict[str, Purpose]] = {
    "autotune": "tuning",
    "graph_capture": "capture",
    "graph_compile": "setup",
    "compile": "setup",
}


def add_purposes(trace: Trace, found: Inference, phases: Mapping[str, str]) -> Trace:
    """Fill `device.purpose` and `device.purpose_basis`.

    Args:
        trace: with launches linked.
        found: what inference says.
        phases: glob over range names -> phase or purpose (`warmup`, `setup`, `tuning`, `capture`).
    """
    launch = ints(trace.device, "launch")
    linked = launch != NONE
    purpose = np.full(len(launch), PURPOSES.index("work"))
    inferred = linked & (found.purpose[launch] > 0) if len(found.purpose) else np.zeros(len(launch), bool)
    purpose[inferred] = found.purpose[launch[inferred]]
    told = _by_candidate(trace, _by_range(trace, phases))
    recorded = linked & (told[launch] != NONE) if len(told) else np.zeros(len(launch), bool)
    purpose[recorded] = told[launch[recorded]]
    # A launch is work because nothing says otherwise; only ranges of the user or of a recorder make that a record.
    basis = np.where(recorded, 0, 1)
    known = {"purpose": labels(purpose, PURPOSES), "purpose_basis": labels(basis, ("recorded", "inferred"))}
    return replace(trace, device=put(trace.device, **known))


def _by_range(trace: Trace, phases: Mapping[str, str]) -> np.ndarray:
    """Purpose that the innermost mapped range gives to each host row, -1 for none; shape (host rows,)."""
    host = trace.host
    out = np.full(host.num_rows, NONE)
    if not phases:
        return out
    code, names = codes(host, "name")
    by_name = np.array([_purpose(n, phases) for n in names] or [NONE])
    ranges = np.flatnonzero(is_kind(host, "range", "startend"))
    ranges = ranges[by_name[code[ranges]] != NONE]
    calls = np.flatnonzero(is_kind(host, "runtime", "driver"))
    owner = open_at(host, ranges, ints(host, "start_ns")[calls], ints(host, "thread")[calls])
    out[calls[owner != NONE]] = by_name[code[owner[owner != NONE]]]
    return out


def _by_candidate(trace: Trace, told: np.ndarray) -> np.ndarray:
    """The same with every call inside a recorded candidate called tuning, unless a range inside it says otherwise."""
    recorded = np.flatnonzero(holds(trace.candidates, "basis", "recorded".__eq__))
    calls = np.flatnonzero(is_kind(trace.host, "runtime", "driver") & (told == NONE))
    begun, thread = ints(trace.host, "start_ns")[calls], ints(trace.host, "thread")[calls]
    told[calls[open_at(trace.candidates, recorded, begun, thread) != NONE]] = PURPOSES.index("tuning")
    return told


def _purpose(name: str, phases: Mapping[str, str]) -> int:
    to = next((to for glob, to in phases.items() if fnmatchcase(name, glob)), None)
    to = _BY_PHASE.get(to, to) if to else None
    return PURPOSES.index(to) if to in PURPOSES else NONE
