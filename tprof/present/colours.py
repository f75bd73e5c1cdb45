"""Colours of the parts of time; each word's own is in `words`."""

from __future__ import annotations

from typing import Final

from tprof.events import COLD_PHASES, PHASES, PURPOSES
from tprof.present.words import WORDS

PHASE: Final[dict[str, str]] = {phase: WORDS[phase].colour for phase in PHASES}
PURPOSE: Final[dict[str, str]] = {purpose: WORDS[purpose].colour for purpose in PURPOSES}
OTHER: Final = "#8a99ab"


def of_part(part: str) -> str:
    """Colour of a part of the wall clock (`busy.tuning`, `idle.compile`), of a phase or of a purpose."""
    where, _, word = part.rpartition(".")
    return (PURPOSE if where == "busy" else PURPOSE | PHASE).get(word, OTHER)


def is_cold(part: str) -> bool:
    """Whether a part of the wall clock, or a phase, is cold start."""
    where, _, word = part.rpartition(".")
    return where != "busy" and word in COLD_PHASES
