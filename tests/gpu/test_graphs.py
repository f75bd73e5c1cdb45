"""CUDA graphs on a real GPU: each replayed kernel belongs to its graph's launch, and captures come before `ready`."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from gpu.conftest import WHY, python_path

import tprof
from tprof.intervals import NONE
from tprof.model import ints

REQUESTS, SIZES = 8, 4  # of examples/graphs.py


@pytest.fixture(scope="module")
def recorded(root, tmp_path_factory):
    """examples/graphs.py under `tprof record`, read back."""
    if WHY:
        pytest.skip(f"needs a GPU: {WHY}")
    run = tmp_path_factory.mktemp("graphs") / "run"
    command = [sys.executable, "-m", "tprof", "record", "--torch-profiler", "gpu", "-o", str(run), "--"]
    environment = os.environ | {"PYTHONPATH": python_path(root), "TPROF_KERNELS_TUNE": "0"}
    subprocess.run([*command, sys.executable, "examples/graphs.py"], cwd=root, env=environment, check=True)
    return tprof.load(run)


def test_every_replay_has_its_graph_launch(recorded):
    host, device = recorded.frame("host"), recorded.frame("device")
    launch = ints(recorded.device, "launch")
    assert (launch != NONE).all()
    replayed = device[(host.name.iloc[launch] == "cudaGraphLaunch").to_numpy()]
    assert len(replayed) >= REQUESTS * 3  # norm, product, softmax
    assert len(set(launch[replayed.index])) == REQUESTS


def test_captures_are_cold_and_requests_are_not(recorded):
    spans = recorded.frame("spans")
    captures = spans[spans.phase == "graph_capture"]
    first = min(row["start_ns"] for row in recorded.requests().to_dict()["requests"])
    assert len(captures) >= SIZES
    assert (captures.end_ns <= first).all()
    assert all(row["cold_tax_ns"] == 0 for row in recorded.requests().to_dict()["requests"])
