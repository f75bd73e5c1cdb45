"""Compiled variants that a recorder saw: what each cost, who asked for it first, and what about it was new."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tprof.analyze.first_uses import source_of

if TYPE_CHECKING:
    from tprof.analyze.asked import Asked
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.result import Row

_FACTS: Final = ("cache_hit", "registers", "spills", "shared_bytes", "binary_bytes", "hash")
_OPTION: Final = "option "
_DIVISIBLE: Final = "tt.divisibility=16"


def specialization_rows(attribution: Attribution, window: tuple[int, int], asked: Asked) -> list[Row]:
    """One row per variant first asked for in the window, in time order; empty without a recorder."""
    trace = attribution.trace
    compiled = {c["specialization"]: c for c in trace.compiles.to_pylist() if c["specialization"] is not None}
    rows = [(row, compiled.get(i)) for i, row in enumerate(trace.specializations.to_pylist())]
    inside = [(row, use) for row, use in rows if row["start_ns"] and window[0] <= row["start_ns"] <= window[1]]
    inside.sort(key=lambda pair: pair[0]["start_ns"])
    return [{"at_ns": row["start_ns"] - attribution.extent[0], **_row(row, use, asked)} for row, use in inside]


def _row(row: Row, use: Row | None, asked: Asked) -> Row:
    changes = None if row["changes"] is None else json.loads(row["changes"])
    return {
        "kernel": row["kernel"] or row["function"].rsplit(".", 1)[-1],
        "why": why_new(changes, json.loads(row["scalars"] or "{}")),
        "wall_ns": use["end_ns"] - use["start_ns"] if use else None,
        **({} if use is None else asked.of(use["thread"], use["start_ns"], use["end_ns"])),
        **{fact: row[fact] for fact in _FACTS},
        "source": source_of(row),
        "function": row["function"],
        "pid": row["pid"],
        "changes": changes,
    }


def why_new(changes: list[Row] | None, scalars: Row) -> str:
    """What differs from the most similar earlier variant of the process, in words.

    Args:
        changes: `{name, before, after}` per argument and option; None for the first variant of its function.
        scalars: numbers that its first launch passed, by name.
    """
    if changes is None:
        return "first in the process"
    if not changes:
        return "the same again: it was no longer in memory"
    return "; ".join(_words(c["name"], c["before"], c["after"], scalars.get(c["name"])) for c in changes)


def _words(name: str, before: str | None, after: str | None, value: Any) -> str:
    if before is None or after is None:
        return f"{name.removeprefix(_OPTION)} is {'new' if before is None else 'gone'}"
    old, new = before.removeprefix("constant "), after.removeprefix("constant ")
    if name.startswith(_OPTION) or (old != before and new != after):
        return f"{name.removeprefix(_OPTION)}: {old} -> {new}"
    if new != after:
        return f"{name} became {new}"
    if old != before:
        return f"{name} is no longer {old}" + ("" if value is None else f" but {value}")
    return _hints(name, before.split(", "), after.split(", "), value)


def _hints(name: str, before: list[str], after: list[str], value: Any) -> str:
    """Of two types with their hints: which of the two changed, and how."""
    if before[0] != after[0]:
        return f"{name}: {before[0].lstrip('*')} -> {after[0].lstrip('*')}"
    if {*before} ^ {*after} != {_DIVISIBLE}:
        return f"{name}: {', '.join(before)} -> {', '.join(after)}"
    what = f"the address of {name}" if after[0].startswith("*") else name
    lost = _DIVISIBLE in before
    if value is None:
        return f"{what} is {'no longer' if lost else 'now'} divisible by 16"
    return f"{what}: {value} is {'not ' if lost else ''}divisible by 16"
