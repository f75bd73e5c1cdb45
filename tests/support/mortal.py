"""Work for a process pool in which some tasks fail and some kill their process."""

from __future__ import annotations

import os
import time

from tprof.cli.workers import Outcome, Task


def work(task: Task) -> Outcome:
    """Die, or say that it is done."""
    if "kill" in task.source:
        time.sleep(0.05)
        os._exit(9)
    return Outcome(task.source, {"wall_ns": len(task.source)})
