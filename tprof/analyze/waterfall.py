"""The steps of a cold start in order: candidates, first uses, and what lies between them, each cut by phase."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.intervals import NONE, innermost

if TYPE_CHECKING:
    from tprof.analyze.result import Row

_STAGE: Final = "/"  # between a kernel and a stage of its compile, in the evidence of a span


def waterfall_rows(spans: list[Row], first_uses: list[Row], candidates: list[Row], zero: int) -> list[Row]:
    """Cold spans with the step that each belongs to, steps in order of their begin.

    A step is a candidate with the first use that it was compiled for, a first use of its own, or, of what lies in
    neither, everything of one kernel (of one phase where no kernel can be charged) on a thread.

    Args:
        spans: exclusive on a thread.
        first_uses: rows of `first_use_rows`.
        candidates: rows of `candidate_rows`.
        zero: instant from which `at_ns` counts, ns.

    Returns:
        Rows of number (of the step), role (candidate, winner, first use, other), kernel, config, phase, what (stage of
        a compile, or function), at_ns, start_ns, end_ns, wall_ns, thread, basis. They sum to the spans.
    """
    steps = _steps(first_uses, candidates)
    owner = _owners(spans, steps)
    found = [(steps[at] if at != NONE else _step("other", span), span) for at, span in zip(owner, spans, strict=True)]
    found.sort(key=lambda pair: pair[1]["start_ns"])
    number: dict[tuple[object, ...], int] = {}
    return [
        {
            "number": number.setdefault((step["row"], step["role"], step["thread"], *step["place"]), len(number)),
            **{key: step[key] for key in ("role", "kernel", "config")},
            "phase": span["phase"],
            "what": (span["evidence"] or "").rpartition(_STAGE)[2] or None,
            "at_ns": span["start_ns"] - zero,
            **{key: span[key] for key in ("start_ns", "end_ns")},
            "wall_ns": span["end_ns"] - span["start_ns"],
            **{key: span[key] for key in ("thread", "basis")},
        }
        for step, span in found
    ]


def _steps(first_uses: list[Row], candidates: list[Row]) -> list[Row]:
    """Stretches of steps; a candidate's first use may lie before the candidate."""
    told = {row["row"]: _step("winner" if row["winner"] else "candidate", row) for row in candidates}
    uses = [told.get(use["candidate"], _step("first use", use)) for use in first_uses]
    own = [step | {key: use[key] for key in _EDGES} for step, use in zip(uses, first_uses, strict=True)]
    return [*told.values(), *own]


_EDGES: Final = ("start_ns", "end_ns", "thread")


def _step(role: str, row: Row) -> Row:
    """Step of a candidate or a first use; of what belongs to none, `row` is the span."""
    place = () if role != "other" else (row["kernel"],) if row["kernel"] else ("", row["phase"])
    said = {key: row.get(key) for key in ("row", "kernel", "config", *_EDGES)}
    return {"role": role, "place": place, **said}


def _owners(spans: list[Row], steps: list[Row]) -> list[int]:
    """The innermost step around the begin of each span on its thread, as its number; -1 for none."""
    owner = np.full(len(spans), NONE)
    for thread in {step["thread"] for step in steps}:
        mine = [i for i, step in enumerate(steps) if step["thread"] == thread]
        at = [i for i, span in enumerate(spans) if span["thread"] == thread]
        begin, end = (np.array([steps[i][key] for i in mine], np.int64) for key in ("start_ns", "end_ns"))
        around = innermost(begin, end).at(np.array([spans[i]["start_ns"] for i in at], np.int64))
        owner[at] = np.where(around == NONE, NONE, np.array(mine)[around])
    return owner.tolist()
