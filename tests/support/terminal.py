"""Reading what a program writes to a pseudo-terminal."""

from __future__ import annotations

import os
import select


def read_terminal(terminal: int, seconds: float = 20) -> bytes:
    """What is there; waits for it, and fails where nothing comes."""
    ready, _, _ = select.select([terminal], [], [], seconds)
    assert ready, "nothing was written to the terminal"
    return os.read(terminal, 10_000)
