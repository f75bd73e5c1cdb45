"""Inductor's choice among implementations of a matrix product: what `max_autotune` timed, and which it took."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from tprof.record import dynamo, guard
from tprof.record import session as live

if TYPE_CHECKING:
    from types import ModuleType

    from tprof.record.around import Method
    from tprof.record.session import Session

HOOK: Final = "inductor_selection"
MAX_CHOICES: Final = 512


def watch(module: ModuleType) -> None:
    """Have every selector of `torch._inductor.select_algorithm` tell us, also the one that there is already.

    `add_feedback_saver` would do, but makes the selector, and that initializes CUDA.
    """
    if (selector := getattr(module, "_ALGORITHM_SELECTOR_CACHE", None)) is not None:
        _add(selector)


def wrap_selector(original: Method) -> Method:
    """`AlgorithmSelectorCache.__init__`: there is one per process, made at its first use."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
        original(self, *args, **kwargs)
        if live.active is not None:
            guard.call(HOOK, _add, self)

    return __init__


def _add(selector: Any) -> None:
    if feedback not in selector.feedback_saver_fns:
        selector.feedback_saver_fns.append(feedback)


def forget(module: ModuleType | None) -> None:
    """Take our feedback function out of the selector; other tools' stay."""
    selector = getattr(module, "_ALGORITHM_SELECTOR_CACHE", None)
    if selector is not None and feedback in selector.feedback_saver_fns:
        selector.feedback_saver_fns.remove(feedback)


def feedback(timings: Any, name: Any, input_nodes: Any, choices: Any, *_: Any, **__: Any) -> None:
    """What a selector calls once it has timed its choices; later versions add arguments."""
    session = live.active
    if session is not None:
        guard.call(HOOK, _record, session, timings, str(name), input_nodes, choices)


def _record(session: Session, timings: Any, name: str, input_nodes: Any, choices: Any) -> None:
    timed = {choice: float(ms) for choice, ms in timings.items()}
    rows = [_choice(choice, timed.get(choice, math.inf)) for choice in list(choices)[:MAX_CHOICES]]
    finite = [row for row in rows if row["ms"] is not None]
    best = min(finite, key=lambda row: row["ms"])["name"] if finite else None
    facts = {"name": name, "inputs": [_input(node) for node in input_nodes], "best": best, "choices": rows}
    dynamo.add(session, "selection", facts)


def _choice(choice: Any, ms: float) -> dict[str, Any]:
    return {
        "name": str(getattr(choice, "name", choice)),
        "kind": type(choice).__name__,
        "text": str(getattr(choice, "description", ""))[:500],
        "ms": ms if math.isfinite(ms) else None,
    }


def _input(node: Any) -> dict[str, Any]:
    layout = node.get_layout() if hasattr(node, "get_layout") else node
    return {
        "dtype": str(layout.dtype).removeprefix("torch."),
        "shape": [str(n) for n in layout.size],
        "stride": [str(n) for n in layout.stride],
    }
