"""A batch in a process of its own that is killed at random moments, many times; prints how often it was in time.

Run as a script: a child inherits what is imported, and no thread.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import time

from batched import batch

from tprof.facade import load  # noqa: F401  before the forks


def begin(sources: str, out: str) -> int:
    """Start a batch; the number of its process."""
    if pid := os.fork():
        return pid
    batch([sources], out)
    os._exit(0)


def main(sources: str, out: str, times: int) -> None:
    """Run `out/whole`, then `out/killed-N` (killed several times), each to its end."""
    began = time.monotonic()
    os.waitpid(begin(sources, f"{out}/whole"), 0)
    took, chance, killed = time.monotonic() - began, random.Random(7), 0
    for i in range(times):
        pid = begin(sources, f"{out}/killed-{i % 4}")
        time.sleep(took * chance.random() / 2)
        os.kill(pid, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(pid, 0)[1])
    for i in range(4):
        os.waitpid(begin(sources, f"{out}/killed-{i}"), 0)
    sys.stdout.write(f"{killed}\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
