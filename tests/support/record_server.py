"""A server that never heard of tprof, with workers by spawn, fork, forkserver and subprocess; each compiles a kernel.

`python -m support.record_server [WAYS]`; prints `pid way` per worker and exits with 5.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys

WAYS = ("spawn", "fork", "forkserver", "subprocess")


def work(way: str) -> None:
    """Compile and launch one kernel on the stub driver."""
    import torch
    from support import record_kernels as kernels

    from tprof.testing.stub import stub_driver

    x, o = torch.ones(1024), torch.empty(1024)
    with stub_driver():
        kernels.add[(8,)](x, x, o, 1024, B=128)
    sys.stdout.write(f"{os.getpid()} {way}\n")
    sys.stdout.flush()


def main(ways: list[str]) -> int:
    """Start a worker in every way, and wait for them."""
    for way in ways:
        if way == "subprocess":
            code = "from support.record_server import work; work('subprocess')"
            subprocess.run([sys.executable, "-c", code], env=dict(os.environ), check=True)
            continue
        worker = multiprocessing.get_context(way).Process(target=work, args=(way,))
        worker.start()
        worker.join()
    return 5


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(WAYS)))
