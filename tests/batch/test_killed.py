from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from support import job

TIMES = 20


def content(out: Path) -> dict[str, bytes]:
    """Every file of a batch, by its name."""
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


def test_killed_twenty_times_it_ends_as_if_it_never_was(tmp_path: Path) -> None:
    job.write(tmp_path / "job")
    script = [
        sys.executable,
        str(Path(job.__file__).with_name("killed.py")),
        str(tmp_path / "job"),
        str(tmp_path),
        str(TIMES),
    ]
    done = subprocess.run(script, check=True, capture_output=True, text=True)
    assert int(done.stdout) > TIMES // 2  # the others were done before
    whole = content(tmp_path / "whole")
    assert len(whole) > job.RANKS * 10
    for i in range(4):
        assert content(tmp_path / f"killed-{i}") == whole
