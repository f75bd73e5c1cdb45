"""Devices that look idle throughout, or never, because of how they were recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tprof.align.calls import GRAPH, LAUNCH
from tprof.analyze.findings.records import missing, opaque
from tprof.intervals import total

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.analyze.findings.facts import Facts
    from tprof.analyze.result import Row

_FULL: Final = 0.99  # of a device's span: it looks idle throughout
_NEVER: Final = 0.001  # of a device's span: it looks busy throughout
_MANY: Final = 0.1  # of all launches: enough lost ones to doubt an idle device
_MOST: Final = 0.5  # of busy time, or of all events
_AGAIN: Final = (
    "record again with `nsys profile --cuda-graph-trace=node`, from before the first launch, one tool at a time"
)


def artefacts(facts: Facts) -> list[Row]:
    """Idle figures that say something about the recording only."""
    return [
        facts.finding(
            "idle-artefact",
            f"device {row['device']} looks {said} % idle, which is an artefact",
            0,
            "device's span",
            row["span_ns"],
            why=why,
            fix=_AGAIN,
            basis="unattributed",
        )
        for row in facts.devices
        for said, why in (*_always(facts, row), *_never(facts, row))
    ]


def in_doubt(facts: Facts) -> set[str]:
    """Labels of devices whose idle time is an artefact."""
    return {row["device"] for row in facts.devices if _always(facts, row) or _never(facts, row)}


def _always(facts: Facts, row: Row) -> list[tuple[str, str]]:
    """Why a device looks idle throughout although it was not: what was launched left no record."""
    if not row["idle_ns"] >= _FULL * row["span_ns"] > 0:
        return []
    (_, lost, launches), (_, graphs, replays) = missing(facts, LAUNCH), missing(facts, GRAPH)
    if lost + graphs <= _MANY * (launches + replays):
        return []
    of_graphs = f" and {graphs:,} of {replays:,} graph launches" if replays else ""
    return [("100", f"{lost:,} of {launches:,} launches{of_graphs} left no record on any device")]


def _never(facts: Facts, row: Row) -> list[tuple[str, str]]:
    """Why a device looks busy throughout although it was not."""
    if row["idle_ns"] > _NEVER * row["span_ns"]:
        return []
    if any(r is row and total(*cost) > _MOST * row["busy_ns"] for r, cost, _ in opaque(facts)):
        return [("0", "whole graph executions count as busy, with all gaps inside")]
    if row["overlaps"] > _MOST * row["events"]:
        cannot = "run into the next one of their stream, which cannot be: do not trust their durations"
        return [("0", f"{row['overlaps']:,} of {row['events']:,} events {cannot}")]
    return []


RULES: Final[tuple[Callable[[Facts], list[Row]], ...]] = (artefacts,)
