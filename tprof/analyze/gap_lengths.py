"""How long the gaps of a device are: whether few long ones or many short ones make up its idle time, by phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.analyze.attribution import BUSY
from tprof.analyze.timeline import basis_of, phase_of
from tprof.events import BASES, PHASES
from tprof.intervals import summed

if TYPE_CHECKING:
    from tprof.analyze.attribution import Pieces
    from tprof.analyze.result import Row

EDGES: Final = np.append(10 ** np.arange(19, dtype=np.int64), np.iinfo(np.int64).max)  # ns


def length_rows(pieces: Pieces, length: np.ndarray) -> list[Row]:
    """One row per decade of lengths (1 to 10 us, 10 to 100 us …) that a gap falls into, the shortest first.

    Args:
        pieces: of one device.
        length: of each inside the window, shape (pieces,), ns.

    Returns:
        Rows of from_ns (inclusive), below_ns, gaps, total_ns (of these gaps), of_gaps_share (of the time of all gaps),
        phase (that took most of it), one column per phase, inferred_ns (the part of total_ns that is inferred).
    """
    rest = np.flatnonzero((pieces.where != BUSY) & (length > 0))
    ns, gap, value = length[rest], pieces.gap[rest], pieces.value[rest]
    whole = summed(gap, ns)
    place = np.searchsorted(EDGES, whole, "right") - 1  # -1: no gap of that number in the window
    gaps = np.bincount(place[place >= 0], minlength=len(EDGES))
    at, phases = place[gap], len(PHASES)
    spent = summed(at * phases + phase_of(value), ns, len(EDGES) * phases).reshape(-1, phases)
    inferred = summed(at, ns * (basis_of(value) == BASES.index("inferred")), len(EDGES))
    return [
        {
            "from_ns": int(EDGES[i]),
            "below_ns": int(EDGES[i + 1]),
            "gaps": int(gaps[i]),
            "total_ns": int(spent[i].sum()),
            "of_gaps_share": int(spent[i].sum()) / int(ns.sum()),
            "phase": PHASES[int(spent[i].argmax())],
            **{f"{phase}_ns": int(n) for phase, n in zip(PHASES, spent[i], strict=True)},
            "inferred_ns": int(inferred[i]),
        }
        for i in np.flatnonzero(gaps).tolist()
    ]
