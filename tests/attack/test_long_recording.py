"""A recorder that is on for many launches: flat memory, and every launch on disk. `TPROF_ATTACK=whole`: 10 million."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

from support.skips import needs_triton

import tprof

if TYPE_CHECKING:
    from pathlib import Path

LAUNCHES = 10_000_000 if os.environ.get("TPROF_ATTACK") == "whole" else 200_000
GROWTH = 4 << 20  # bytes between a fifth of the launches and all of them
PROGRAM = """
import json, os, sys
import torch
import prometheus_client
import tprof
from support import record_kernels as kernels
from tprof.metrics import Prometheus
from tprof.testing.stub import stub_driver

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

out, launches = sys.argv[1], int(sys.argv[2])
registry = prometheus_client.CollectorRegistry()
with stub_driver() as driver, tprof.trace(out, nvtx=False):
    driver.keep_launches = False
    metrics = Prometheus(registry)
    x = torch.ones(1024)
    seen = []
    for part in range(10):
        for n in range(launches // 10):
            kernels.add[(8,)](x, x, x, 1024 - n % 7, B=128)
        seen.append(resident())
series = prometheus_client.generate_latest(registry).decode().count("\\n")
print(json.dumps({"resident": seen, "series": series}))
"""


@needs_triton
def test_memory_stays_flat_and_nothing_is_lost(root: Path, tmp_path: Path) -> None:
    paths = os.pathsep.join([str(root), str(root / "tests")])
    environment = {**os.environ, "PYTHONPATH": paths, "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", PROGRAM, tmp_path / "run", str(LAUNCHES)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["resident"][-1] - said["resident"][1] < GROWTH, said
    assert said["series"] < 200, said
    trace = tprof.load(tmp_path / "run")
    assert sum(trace.shape_keys["launches"].to_pylist()) == LAUNCHES
    assert not {"lost-records", "cut-launches", "cut-journal"} & {note.code for note in trace.notes}
