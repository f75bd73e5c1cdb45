"""The life of a shape: what was cold before which call, and each call, in order of time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.events import COLD_PHASES
from tprof.intervals import NONE
from tprof.model import refine

if TYPE_CHECKING:
    from tprof.analyze.census import Census
    from tprof.analyze.result import Row

STEPS: Final = 1000  # of one key; the rest are counted


def life(census: Census, number: int, zero: int) -> list[Row]:
    """Steps of one key: one per cold phase before a call, summed over its `stretches`, and one per call.

    At most `STEPS`, then one step `more` with the number left out. Repetitions of a benchmark are no steps: the time
    that they took is in those of phase `autotune`.

    Args:
        census: which calls.
        number: of the key.
        zero: instant from which `at_ns` counts, ns.
    """
    own = np.flatnonzero(census.kept & (census.calls.key == number) & ~census.calls.tuning)
    steps = _cold_steps(census, number) + [_call(census, at) for at in own[:STEPS].tolist()]
    steps.sort(key=lambda step: step["at_ns"])
    kept = steps[:STEPS]
    if left := len(steps) + max(len(own) - STEPS, 0) - len(kept):
        kept.append({"at_ns": steps[len(kept) - 1]["at_ns"], "step": "more", "stretches": left})
    key = census.calls.keys[number]
    head = {"kernel": key.kernel, "label": census.labels[number], "shape": key.shape}
    return [{**head, **step, "at_ns": step["at_ns"] - zero} for step in kept]


def _cold_steps(census: Census, number: int) -> list[Row]:
    calls, charges = census.calls, census.charges
    cold = np.flatnonzero(census.charged)
    cold = cold[calls.key[charges.call[cold]] == number]
    group = refine(charges.call[cold], charges.phase[cold])
    parts = [cold[group == g] for g in np.unique(group)]
    return [
        {
            "at_ns": int(charges.start[own].min()),
            "step": COLD_PHASES[charges.phase[own[0]]],
            "wall_ns": int((charges.end[own] - charges.start[own]).sum()),
            "stretches": len(own),
            "device_ns": None,
            "request": _request(census, int(charges.call[own[0]])),
            "basis": "recorded" if charges.recorded[own].all() else "inferred",
        }
        for own in parts
    ]


def _call(census: Census, at: int) -> Row:
    calls = census.calls
    wall, device = int(calls.wall_ns[at]), int(calls.device_ns[at])
    return {
        "at_ns": int(calls.start[at]),
        "step": "cold call" if census.cold[at] else "call",
        "wall_ns": None if wall == NONE else wall,
        "stretches": 1,
        "device_ns": None if device == NONE else device,
        "request": _request(census, at),
        "basis": "recorded",
    }


def _request(census: Census, call: int) -> str | None:
    """Name of the request that a call served."""
    row = int(census.request[call])
    return None if row == NONE else str(census.trace.host["name"][row].as_py())
