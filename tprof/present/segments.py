"""A stretch of time cut into parts: what the terminal and the report draw alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tprof.events import PHASES, PURPOSES
from tprof.present import colours, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_SMALL = 0.001  # of a bar
_WHERE = ("busy", "lead", "idle", "tail")


@dataclass(frozen=True)
class Segment:
    """One part of a bar.

    Attributes:
        part: `busy.PURPOSE`, `idle.PHASE`, … or a bare phase.
        label: as people say it.
        ns: its length.
        share: of the whole bar, 0 to 1.
        basis: recorded, inferred or unattributed.
    """

    part: str
    label: str
    ns: int
    share: float
    basis: str = "recorded"

    @property
    def colour(self) -> str:
        """Its fixed colour."""
        return colours.of_part(self.part)

    @property
    def meaning(self) -> str:
        """What it is, in one line."""
        return words.meaning(words.OR_LOAD if self.label.endswith(words.OR_LOAD) else self.part)

    @property
    def unattributed(self) -> bool:
        """Whether nothing is known of it."""
        return self.part.endswith("unattributed")

    @property
    def inferred(self) -> bool:
        """Whether it was deduced, not recorded."""
        return self.basis == "inferred" and not self.unattributed

    @property
    def cold(self) -> bool:
        """Whether it is cold start."""
        return colours.is_cold(self.part)


def wall_segments(rows: Iterable[Mapping[str, Any]], *, or_load: bool = False) -> list[Segment]:
    """Parts of a device's wall clock from `wall` rows of a summary: device work, cold start, everything else."""
    found = [
        Segment(r["part"], words.part_label(r["part"], or_load=or_load), r["total_ns"], r["of_wall_share"], r["basis"])
        for r in rows
    ]
    return sorted(found, key=_place)


def budget_segments(phases: Mapping[str, int], wall_ns: int, *, or_load: bool = False) -> list[Segment]:
    """Parts of a request: its phases, cold ones first, each group by size."""
    found = [
        Segment(phase, words.label(phase, or_load=or_load), ns, ns / wall_ns if wall_ns else 0.0)
        for phase, ns in phases.items()
    ]
    return sorted(found, key=lambda s: (not s.cold, s.unattributed, -s.ns))


def split(segments: Sequence[Segment]) -> tuple[list[Segment], list[Segment]]:
    """Those that a legend lists, and those so small that it sums them up."""
    return [s for s in segments if s.share >= _SMALL], [s for s in segments if s.share < _SMALL]


def _place(segment: Segment) -> tuple[bool, bool, bool, int, int]:
    """Busy by purpose, then cold, then warm, the unknown last: one phase's lead, idle and tail lie side by side."""
    where, _, word = segment.part.partition(".")
    order = PURPOSES if where == "busy" else PHASES
    place = order.index(word) if word in order else len(order)
    return where != "busy", not segment.cold, segment.unattributed, place, _WHERE.index(where)
