"""Compiled variants of a function: what is new about one, and that in words. Standard library only."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

REMEMBERED: Final = 64  # variants of a function that a new one is compared with
Record = dict[str, Any]  # a specialization as the recorder writes it
Change = dict[str, Any]  # {name, before, after}
Flat = dict[str, str]

_OPTION: Final = "option "
_CONSTANT: Final = "constant "
DIVISIBLE: Final = "tt.divisibility=16"  # the hint of a number or an address, as Triton writes it


def changes(said: Iterable[Record]) -> list[list[Change] | None]:
    """Per specialization what is new in it: {name, before, after} per argument and option; None for the first.

    The earlier variant with the fewest changes counts; among equals the one with the same constants, whose arguments
    then tell it apart, and of those the latest. Names of options begin with `option `.
    """
    earlier: dict[str, deque[Flat]] = {}
    found: list[list[Change] | None] = []
    for row in said:
        now, known = flat(row), earlier.setdefault(row["function"], deque(maxlen=REMEMBERED))
        found.append(nearest(now, known))
        known.append(now)
    return found


def nearest(now: Flat, known: Iterable[Flat]) -> list[Change] | None:
    """What is new in a variant against the one of `known` that is most like it; None where there is none."""
    differences = [_changes(before, now) for before in known]
    return min(reversed(differences), key=lambda d: (len(d), sum(map(_by_choice, d)))) if differences else None


def _by_choice(change: Change) -> bool:
    """Whether a constant or an option changed, rather than what an argument happened to be."""
    both_constant = all(str(change[side]).startswith(_CONSTANT) for side in ("before", "after"))
    return both_constant or change["name"].startswith(_OPTION)


def _changes(before: Flat, after: Flat) -> list[Change]:
    return [
        {"name": name, "before": before.get(name), "after": after.get(name)}
        for name in dict.fromkeys([*after, *before])
        if before.get(name) != after.get(name)
    ]


def flat(row: Record) -> Flat:
    """A specialization as the recorder describes it: argument -> one text, option -> one text."""
    arguments = {a["name"]: _text(a) for a in row.get("arguments") or ()}
    return arguments | {f"{_OPTION}{name}": str(value) for name, value in (row.get("options") or {}).items()}


def _text(argument: Record) -> str:
    if "value" in argument:
        return f"{_CONSTANT}{argument['value']}"
    return ", ".join([str(argument["type"]), *argument.get("hints", ())])


def why_new(changes: list[Change] | None, scalars: Record) -> str:
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
    old, new = before.removeprefix(_CONSTANT), after.removeprefix(_CONSTANT)
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
    if {*before} ^ {*after} != {DIVISIBLE}:
        return f"{name}: {', '.join(before)} -> {', '.join(after)}"
    what = f"the address of {name}" if after[0].startswith("*") else name
    lost = DIVISIBLE in before
    if value is None:
        return f"{what} is {'no longer' if lost else 'now'} divisible by 16"
    return f"{what}: {value} is {'not ' if lost else ''}divisible by 16"
