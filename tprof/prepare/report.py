"""What a warm-up did: one item per kernel, search and call."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any, Literal

Kind = Literal["plan", "library", "search", "kernel", "call"]
Outcome = Literal["done", "skipped", "failed"]


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that was to be prepared.

    Attributes:
        kind: plan, library, search, kernel or call.
        name: what, for a person.
        outcome: done, skipped or failed.
        wall_ns: time of the thread that did it.
        why: of what was skipped or failed: what happened, and what to do; of what is done: what to know about it.
    """

    kind: Kind
    name: str
    outcome: Outcome
    wall_ns: int = 0
    why: str = ""


@dataclass(frozen=True)
class Report:
    """What a warm-up did.

    Attributes:
        items: in the order in which they ended.
        wall_ns: from begin to end.
    """

    items: tuple[Item, ...]
    wall_ns: int = 0

    def of(self, outcome: Outcome, *kinds: Kind) -> list[Item]:
        """Items with an outcome, of some kinds (default: all)."""
        return [i for i in self.items if i.outcome == outcome and (not kinds or i.kind in kinds)]

    @property
    def complete(self) -> bool:
        """Nothing was skipped and nothing failed."""
        return all(item.outcome == "done" for item in self.items)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"wall_ns": self.wall_ns, "complete": self.complete, "items": [asdict(item) for item in self.items]}

    def __str__(self) -> str:
        done, rest = Counter(i.kind for i in self.of("done")), Counter(i.outcome for i in self.items)
        parts = [f"{done['kernel']} kernels compiled and loaded", f"{done['search']} winners restored"]
        parts += [f"{done['call']} calls"] * bool(done["call"])
        parts += [f"{rest[outcome]} {outcome}" for outcome in ("skipped", "failed") if rest[outcome]]
        return f"{', '.join(parts)} in {self.wall_ns / 1e9:.2f} s"
