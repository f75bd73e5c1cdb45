"""What a process did before it could be recorded: when the system started it, and what it imported since."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tprof.record import clock

if TYPE_CHECKING:
    from tprof.record.session import Session

# (module, begin, end) of imports that the private `sitecustomize` timed, first of all, without a name, that it ran: the
# interpreter was up. It hands its list over once tprof can be imported, and goes on adding to it.
imports: list[tuple[str, int, int]] = []


def started_ns() -> int | None:
    """When the system started this process, ns on the monotonic clock, to within 10 ms; None where it does not say."""
    try:
        after_name = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
        since_boot = int(after_name[19]) * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
        return clock.now() - max(time.clock_gettime_ns(time.CLOCK_BOOTTIME) - since_boot, 0)
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def write(session: Session) -> None:
    """Put what was imported since the last call into the journal."""
    while imports:
        name, start, end = imports.pop(0)
        record = {"type": "import", "name": name, "t_ns": start, "end_ns": end}
        session.journal.add(record if name else {"type": "interpreter", "t_ns": start})
