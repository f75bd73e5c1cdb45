"""A real service on a real GPU, recorded with torch.profiler beside it: every kernel meets its launch and its shape."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest
from gpu.conftest import WHY, python_path

import tprof
from tprof.intervals import NONE
from tprof.model import codes, ints

LENGTHS = (512, 512, 777)
CONFIGS = 6  # of the example's autotuned matmul


@pytest.fixture(scope="module")
def recorded(root, tmp_path_factory):
    """A cold start of examples/serve.py, read back."""
    if WHY:
        pytest.skip(f"needs a GPU: {WHY}")
    folder = tmp_path_factory.mktemp("serve")
    caches = {"TRITON_CACHE_DIR": str(folder / "triton"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor")}
    command = [sys.executable, "examples/serve.py", str(folder / "run"), "--torch-profiler", "gpu"]
    environment = os.environ | caches | {"PYTHONPATH": python_path(root)}
    subprocess.run([*command, "--lengths", ",".join(map(str, LENGTHS))], cwd=root, env=environment, check=True)
    return tprof.load(folder / "run")


def kernel_rows(trace, name):
    code, names = codes(trace.device, "name")
    return [i for i, c in enumerate(code.tolist()) if names[c] == name]


@pytest.mark.parametrize("kernel", ["matmul", "attention_forward"])
def test_every_execution_knows_its_launch_and_its_shape_key(recorded, kernel):
    rows = kernel_rows(recorded, kernel)
    launch, key = ints(recorded.device, "launch")[rows], codes(recorded.host, "shape_key")[0]
    assert len(rows) >= len(LENGTHS)
    assert (launch != NONE).all()
    assert (key[launch] != NONE).all()


def test_executions_and_recorded_launches_are_as_many_per_shape_key(recorded):
    key, keys = codes(recorded.host, "shape_key")
    launch = ints(recorded.device, "launch")[kernel_rows(recorded, "matmul")]
    host = recorded.frame("host")
    launched = host[(host.kind == "launch") & (host.kernel == "matmul")]
    assert Counter(keys[c] for c in key[launch].tolist()) == Counter(launched.shape_key.to_list())


def test_candidates_are_tuning_and_the_requests_own_launches_are_work(recorded):
    device = recorded.frame("device")
    purposes = Counter(device[device.name == "matmul"].purpose.to_list())
    assert purposes["work"] == len(LENGTHS)
    assert purposes["tuning"] > 10 * CONFIGS
    timed = recorded.frame("candidates")
    timed = timed[(timed.kernel == "matmul") & (timed.basis == "recorded")]
    assert len(timed) == 2 * CONFIGS  # 512 and 777: the autotune key holds the length
    assert (timed.device_ns > 0).all()
    assert timed.winner.sum() == 2


def test_the_first_request_of_a_length_is_cold_and_the_second_is_not(recorded):
    first, again, new = recorded.requests().to_dict()["requests"]
    assert first["cold_tax_ns"] > 0.9 * first["wall_ns"]
    assert new["cold_tax_ns"] > 0.9 * new["wall_ns"]
    assert again["cold_tax_ns"] == 0
    assert all(sum(r["phases"].values()) == r["wall_ns"] for r in (first, again, new))


def test_the_reason_of_the_second_compile_is_the_length(recorded):
    why = [row["why"] for row in recorded.cold().to_dict()["specializations"] if row["kernel"] == "matmul"]
    assert "M: 777 is not divisible by 16" in why


def test_the_clocks_are_joined_by_beacons(recorded):
    errors = [s["clock_error_ns"] for s in recorded.sources.to_pylist() if s["format"] == "torch"]
    assert errors
    assert all(error is not None and error < 1_000_000 for error in errors)


def test_conservation_on_the_device(recorded):
    summary = recorded.summary().to_dict()
    (device,) = summary["devices"]
    assert sum(device["wall_by_phase"].values()) == summary["window"]["wall_ns"]
    assert sum(device["idle_by_phase"].values()) == device["idle_ns"]
    assert sum(device["busy_by_purpose"].values()) == device["busy_ns"]
    assert device["unlinked"] == 0
