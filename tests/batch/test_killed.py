from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from support import job

if TYPE_CHECKING:
    from pathlib import Path

TIMES = 20


def command(sources: Path, out: Path) -> list[str]:
    return [sys.executable, "-m", "tprof", "batch", str(sources), "-o", str(out), "-j", "2", "-f", "json"]


def content(out: Path) -> dict[str, bytes]:
    """Every file of a batch, by its name."""
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


def test_killed_twenty_times_it_ends_as_if_it_never_was(tmp_path: Path) -> None:
    job.write(tmp_path / "job")
    began = time.monotonic()
    subprocess.run(command(tmp_path / "job", tmp_path / "whole"), check=True, capture_output=True)
    took, chance = time.monotonic() - began, random.Random(7)
    for i in range(TIMES):
        out = tmp_path / f"killed-{i % 4}"  # some are killed several times over
        with subprocess.Popen(
            command(tmp_path / "job", out), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        ) as process:
            time.sleep(took * chance.uniform(0.3, 1.0))
            os.kill(process.pid, signal.SIGKILL)  # of its children, nobody is told
    for i in range(4):
        subprocess.run(command(tmp_path / "job", tmp_path / f"killed-{i}"), check=True, capture_output=True)
        assert content(tmp_path / f"killed-{i}") == content(tmp_path / "whole")
