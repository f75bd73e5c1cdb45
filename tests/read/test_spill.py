from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tprof.errors import TprofError
from tprof.read import spill

SETTING = """
import os, sys
import numpy as np
from tprof.read import spill
def anonymous():
    return int(next(x for x in open("/proc/self/status") if x.startswith("RssAnon")).split()[1]) << 10
spill.use()
"""


def run(code: str, folder: Path) -> list[str]:
    """What a process of its own prints: the setting lasts as long as it."""
    command = [sys.executable, "-c", SETTING + code]
    own = {"PYTHONPATH": str(Path(__file__).resolve().parents[2]), "TPROF_CACHE_DIR": str(folder)}
    return subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, check=True).stdout.split()


def test_large_arrays_take_no_anonymous_memory(tmp_path: Path) -> None:
    code = """
before = anonymous()
a = np.arange(8_000_000)
b = np.sort(a[::-1])
print((a == b).all(), anonymous() - before < 20_000_000, int(np.zeros(8_000_000).sum()))
"""
    assert run(code, tmp_path) == ["True", "True", "0"]
    assert list((tmp_path / "spill").iterdir()) == []  # the files have no names


def test_arrays_of_every_size_keep_their_content(tmp_path: Path) -> None:
    code = f"""
large = {spill.LARGE_BYTES}
for size in (0, 1, large - 1, large, large + 1, 3 * large):
    a = np.ones(size, np.uint8)
    for new in (0, 10, large, 5 * large):
        b = a.copy()
        b.resize(new, refcheck=False)
        assert len(b) == new and b[:size].all() and not b[size:].any()
print("done")
"""
    assert run(code, tmp_path) == ["done"]


def test_a_full_folder_falls_back_to_memory(tmp_path: Path) -> None:
    code = """
def full(*given):
    raise OSError(28, "No space left on device")
os.posix_fallocate = full
print(np.arange(1_000_000).sum(), np.zeros(1_000_000).sum())
"""
    assert run(code, tmp_path) == ["499999500000", "0.0"]


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TPROF_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(TprofError, match="needs a folder to write to"):
        spill.use()


@pytest.mark.parametrize("verb", ["summary", "kernels"])
def test_results_are_the_same(sample_traces: Path, tmp_path: Path, verb: str) -> None:
    code = f"""
from tprof.cli import main
main(["{verb}", "{sample_traces / "h200-torch.json.gz"}", "-f", "json", "--low-memory"])
"""
    command = [sys.executable, "-m", "tprof", verb, sample_traces / "h200-torch.json.gz", "-f", "json"]
    plain = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert run(code, tmp_path) == plain.split()
