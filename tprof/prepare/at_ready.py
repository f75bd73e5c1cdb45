"""`tprof.ready()`: the end of start-up, before which the plan that `TPROF_PLAN` names is applied."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final

from tprof import record

if TYPE_CHECKING:
    from tprof.prepare.report import Item

VARIABLE: Final = "TPROF_PLAN"
LINE: Final = "\r\x1b[Ktprof: warm-up: "  # over what the line held
_applied: list[str] = []  # the plan, from then on; a forked child starts with what its parent had


def ready() -> None:
    """Mark the end of start-up: from here on nothing should compile.

    Where `TPROF_PLAN` names a plan (`tprof warmup PLAN -- COMMAND` sets it), it is applied first, once per process;
    on a terminal with a progress bar.
    """
    plan = os.environ.get(VARIABLE)
    if plan and not _applied:
        from tprof.prepare.warmup import warmup  # noqa: PLC0415 - thread pools are for those who have a plan

        _applied.append(plan)
        if sys.stderr.isatty():
            sys.stderr.write(f"{LINE}{warmup(plan, progress=_bar)}\n")
        else:
            warmup(plan)
    record.ready()


def _bar(done: int, whole: int, item: Item) -> None:
    """One line that changes as items end."""
    sys.stderr.write(f"{LINE}{'#' * (20 * done // whole):20} {done}/{whole} {item.name[:50]}")
    sys.stderr.flush()
