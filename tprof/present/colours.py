"""The one place for colours: a fixed one per phase, purpose and path, the same in terminal, report and app.

Cold phases are warm colours (vermilion to yellow and pink), warm phases blues, greens and greys, so that the two
families stay apart for every common kind of colour-blindness; within a family neighbours differ in lightness.
All were chosen to have a contrast of at least 2 against white and against #14171c.
"""

from __future__ import annotations

from typing import Final

from tprof.events import COLD_PHASES

PHASE: Final[dict[str, str]] = {
    "compile": "#d9480f",
    "cache": "#b08968",
    "launcher_build": "#f08c00",
    "module_load": "#e0b000",
    "autotune": "#d6498f",
    "graph_compile": "#c0394b",
    "graph_capture": "#e58a7b",
    "init": "#a3742c",
    "launch": "#2b7de0",
    "sync": "#45a9e6",
    "memory": "#0f9d94",
    "collective": "#5c63d8",
    "framework": "#6f86b5",
    "host": "#8a99ab",
    "unattributed": "#a9a9a9",
    "turnaround": "#4fb3bf",
    "dependency": "#3f8f6b",
    "graph": "#2f9e5f",
}
PURPOSE: Final[dict[str, str]] = {
    "work": "#37a03c",
    "setup": "#a69b2b",
    "warmup": "#c9a227",
    "capture": "#e58a7b",
    "tuning": "#b565d0",
}
OTHER: Final = "#8a99ab"


def of_part(part: str) -> str:
    """Colour of a part of the wall clock (`busy.tuning`, `idle.compile`), of a phase or of a purpose."""
    where, _, word = part.rpartition(".")
    table = PURPOSE if where == "busy" else PHASE | PURPOSE
    return table.get(word, OTHER) if where == "busy" else PHASE.get(word, table.get(word, OTHER))


def is_cold(part: str) -> bool:
    """Whether a part of the wall clock, or a phase, is cold start."""
    where, _, word = part.rpartition(".")
    return where != "busy" and word in COLD_PHASES
