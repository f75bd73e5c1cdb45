"""Winners of an autotuner's searches, put back where the autotuner keeps them: nothing is timed again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tprof.prepare.report import Item
from tprof.record.journal import plain
from tprof.record.triton_tune import config as described

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.prepare.plan_file import Kernel, Search

GONE = "its winner is no longer among the candidates; record and plan it again"
NO_TUNER = "no autotuner of this function has the key {}; record and plan it again"


def restore(kernel: Kernel, functions: Sequence[Any], tuners: Sequence[tuple[Any, Any]]) -> list[Item]:
    """Put the winners of a kernel's searches into its autotuners; what they know already stays.

    Args:
        kernel: of the plan.
        functions: what it is in this process.
        tuners: (function, autotuner) pairs of this process.
    """
    mine = [tuner for function, tuner in tuners if any(function is f for f in functions)]
    return [_restored(kernel, search, mine) for search in kernel.searches] if functions else []


def _restored(kernel: Kernel, search: Search, tuners: list[Any]) -> Item:
    key = " ".join(f"{n}={v}" for n, v in zip(search.key_names, search.key, strict=False))
    name = f"{kernel.function} {key}"
    fitting = [tuner for tuner in tuners if list(tuner.keys) == search.key_names]
    if not fitting:
        return Item("search", name, "skipped", 0, NO_TUNER.format(", ".join(search.key_names)))
    found = [(tuner, c) for tuner in fitting for c in tuner.configs if plain(described(c)) == search.config]
    for tuner, winner in found:
        tuner.cache.setdefault(tuple(search.key), winner)
    return Item("search", name, "done" if found else "skipped", 0, "" if found else GONE)
