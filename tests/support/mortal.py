"""Work for a process pool in which some tasks kill their process, and some take long."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tprof.batch.work import Outcome

if TYPE_CHECKING:
    from tprof.batch.work import Task


def work(task: Task) -> Outcome:
    """Die, or say that it is done."""
    if "kill" in task.source.path:
        time.sleep(0.05)
        os._exit(9)
    return Outcome(task.source)


def slow(task: Task) -> Outcome:
    """Say which process this is, then sleep."""
    part = Path(task.source.path + ".part")
    part.write_text(str(os.getpid()))
    part.replace(task.source.path)
    time.sleep(600)
    return Outcome(task.source)
