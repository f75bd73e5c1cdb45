"""Compiled variants of a recorded process, and how each differs from the earlier one that is most like it."""

from __future__ import annotations

import json
from collections import deque
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tprof.read.run_journal import Record

REMEMBERED: Final = 64  # variants of a function that a new one is compared with
Change = dict[str, Any]


def changes(said: list[Record]) -> list[list[Change] | None]:
    """Per specialization what is new in it: {name, before, after} per argument and option; None for the first.

    The earlier variant with the fewest changes counts; among equals the one with the same constants, whose arguments
    then tell it apart, and of those the latest. Names of options begin with `option `.
    """
    earlier: dict[str, deque[dict[str, str]]] = {}
    found: list[list[Change] | None] = []
    for row in said:
        now, known = _flat(row), earlier.setdefault(row["function"], deque(maxlen=REMEMBERED))
        found.append(_nearest(now, known))
        known.append(now)
    return found


def _nearest(now: dict[str, str], known: Iterable[dict[str, str]]) -> list[Change] | None:
    differences = [_changes(before, now) for before in known]
    return min(reversed(differences), key=lambda d: (len(d), sum(map(_by_choice, d)))) if differences else None


def _by_choice(change: Change) -> bool:
    """Whether a constant or an option changed, rather than what an argument happened to be."""
    both_constant = all(str(change[side]).startswith("constant ") for side in ("before", "after"))
    return both_constant or change["name"].startswith("option ")


def _changes(before: dict[str, str], after: dict[str, str]) -> list[Change]:
    return [
        {"name": name, "before": before.get(name), "after": after.get(name)}
        for name in dict.fromkeys([*after, *before])
        if before.get(name) != after.get(name)
    ]


def _flat(row: Record) -> dict[str, str]:
    """Argument -> one text, option -> one text."""
    arguments = {a["name"]: _text(a) for a in row.get("arguments") or ()}
    return arguments | {f"option {name}": str(value) for name, value in (row.get("options") or {}).items()}


def _text(argument: Record) -> str:
    if "value" in argument:
        return f"constant {argument['value']}"
    return ", ".join([str(argument["type"]), *argument.get("hints", ())])


def of_kernel(kernel: Record) -> Record:
    """A compiled kernel as a specialization; it does not tell the hints of its arguments."""
    constant = kernel.get("constexprs") or {}
    arguments = [
        {"name": name, "type": "constexpr", "value": constant[name]}
        if name in constant
        else {"name": name, "type": kind}
        for name, kind in (kernel.get("signature") or {}).items()
    ]
    facts = {name: kernel.get(name) for name in ("function", "file", "line", "options")}
    return {**facts, "arguments": arguments}


def scalars(shape: Record | None) -> str | None:
    """Numbers among the arguments of a shape key, by name, as JSON; null where there is none."""
    found = {name: value for name, value in (shape or {}).get("args", {}).items() if isinstance(value, (int, float))}
    return json.dumps(found) if found else None


def key_parts(kernel: Record | None) -> str | None:
    """What the disk cache's key of a kernel was made of, besides the variant itself, as JSON."""
    if not kernel or "key_parts" not in kernel:
        return None
    target = kernel.get("target") or {}
    return json.dumps({"target": f"{target.get('backend')}:{target.get('arch')}", **kernel["key_parts"]})
