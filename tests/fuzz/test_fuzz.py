"""A small fixed part of the long run (docs/trust.md): the first inputs of each target, and those that once failed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

INPUTS = {"torch": 60, "sqlite": 40, "arrow": 40, "run": 60, "plan": 1000, "bundle": 500}
FAILED = {  # what was mended because of them is in the history
    "plan": (101982, 102437),
    "bundle": (100161, 100848, 101720, 102176, 105532, 111428, 200663),
    "arrow": (200920, 201663),
    "run": (1799, 3506, 7331, 102112, 102455, 102700, 102839, 102940),
    "sqlite": (3570, 4382, 100522, 101510, 101911, 102103),
}


def run(root, target, first, count):
    command = [sys.executable, root / "tests" / "fuzz" / "run.py", target, "--from", str(first), "--inputs", str(count)]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)


@pytest.mark.parametrize("target", INPUTS)
def test_no_input_breaks_a_reader(root, target):
    done = run(root, target, 0, INPUTS[target])
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


@pytest.mark.parametrize("target", FAILED)
def test_what_once_failed_fails_no_more(root, target):
    for number in FAILED[target]:
        done = run(root, target, number, 1)
        assert done.returncode == 0, done.stdout
