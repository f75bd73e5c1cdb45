"""`tprof.ready()`: the end of start-up, before which the plan that `TPROF_PLAN` names is applied."""

from __future__ import annotations

import os
from typing import Final

from tprof import record

VARIABLE: Final = "TPROF_PLAN"
_applied: list[str] = []  # the plan, from then on; a forked child starts with what its parent had


def ready() -> None:
    """Mark the end of start-up: from here on nothing should compile.

    Where `TPROF_PLAN` names a plan (`tprof warmup PLAN -- COMMAND` sets it), it is applied first, once per process.
    """
    plan = os.environ.get(VARIABLE)
    if plan and not _applied:
        from tprof.prepare.warmup import warmup  # noqa: PLC0415 - thread pools are for those who have a plan

        _applied.append(plan)
        warmup(plan)
    record.ready()
