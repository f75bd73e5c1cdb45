"""NVTX ranges as a tool sees them: by an injection library that the test builds; and torch.profiler's view."""

from __future__ import annotations

import gzip
import json
import shutil
import subprocess
from collections import Counter

import pytest
from support import rundir
from support.skips import needs_triton

pytestmark = needs_triton
DEMO = "import sys\nfrom support.record_demo import demo\ndemo(sys.argv[1])"


@pytest.fixture(scope="module")
def injection(root, tmp_path_factory):
    """An NVTX tool that logs to $NVTXLOG."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler: the NVTX tool cannot be built")
    pytest.importorskip("nvtx", reason="nvtx is not installed")
    library = tmp_path_factory.mktemp("nvtx") / "libnvtxlog.so"
    source = root / "tests" / "support" / "nvtxlog.c"
    subprocess.run([compiler, "-O2", "-Wall", "-shared", "-fPIC", "-o", library, source], check=True)
    return library


@pytest.fixture
def log(injection, python, tmp_path):
    """(kind, domain, category, payload, name, handle) of every range of the demo, and its process."""
    done = python(
        DEMO,
        tmp_path / "run",
        NVTX_INJECTION64_PATH=str(injection),
        NVTXLOG=str(tmp_path / "log"),
        TRITON_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in (tmp_path / "log").read_text().splitlines()], rundir.only(tmp_path / "run")


def test_ranges_arrive_balanced_with_category_and_payload(log):
    lines, process = log
    kinds = Counter(line[0] for line in lines)
    assert {line[1] for line in lines} == {"tprof"}
    assert kinds["push"] == kinds["pop"]
    assert kinds["start"] == kinds["end"] == 3  # request, serve, range
    named = {(line[2], line[4]): int(line[3]) for line in lines if line[0] in ("push", "start")}
    categories = {category for category, _ in named}
    assert categories == {
        "compile", "cache", "launcher_build", "module_load", "autotune", "launch", "clock", "request", "serve", "range"
    }  # fmt: skip
    spans = process.spans
    for (category, name), payload in named.items():
        if category in ("launch", "clock"):
            continue
        assert name == f"{spans[payload]['kind']}:{spans[payload]['name']}"
    kernels = {k["id"] for k in process.of("kernel")}
    launches = {name: payload for (category, name), payload in named.items() if category == "launch"}
    assert launches.keys() == {"launch:add#1", "launch:add#2", "launch:add#3", "launch:pick#4", "launch:pick#5"}
    assert set(launches.values()) <= kernels
    assert sum(line[2] == "launch" for line in lines) == len(process.launches)


def test_beacons_say_what_the_journal_says(log):
    lines, process = log
    emitted = {line[4] for line in lines if line[2] == "clock"}
    assert emitted == {f"tprof::clock:{c['t_ns']}:{c['wall_ns']}" for c in process.of("clock")}
    assert [c["when"] for c in process.of("clock") if c["when"] != "tick"] == ["start", "end"]


def test_nothing_is_emitted_where_nvtx_is_off(injection, python, tmp_path):
    done = python(
        DEMO,
        tmp_path / "run",
        NVTX_INJECTION64_PATH=str(injection),
        NVTXLOG=str(tmp_path / "log"),
        TPROF_NVTX="0",
    )
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "log").exists() or (tmp_path / "log").read_text() == ""


def test_torch_profiler_sees_launches_and_beacons(stub, tmp_path):
    import torch
    from support import record_kernels as kernels

    from tprof.record import trace

    x, o = torch.ones(1024), torch.empty(1024)
    with trace(tmp_path / "run", torch_profiler="cpu"):
        torch.add(x, x)
        for _ in range(3):
            kernels.add[(8,)](x, x, o, 1024, B=128)
    (path,) = (tmp_path / "run").glob("*.torch.json.gz")
    assert path.stat().st_mode & 0o777 == 0o600
    with gzip.open(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    names = Counter(e.get("name") for e in events)
    assert names["aten::add"] == 1
    assert names["tprof::launch:add#1"] == 3
    assert {str(e["args"]["tprof_key"]) for e in events if e.get("name") == "tprof::launch:add#1"} == {"1"}
    beacons = {c["when"]: f"tprof::clock:{c['t_ns']}:{c['wall_ns']}" for c in rundir.only(tmp_path / "run").of("clock")}
    assert names[beacons["start"]] == names[beacons["end"]] == 1


def test_a_profiler_of_the_user_is_left_alone(stub, tmp_path):
    from torch.profiler import ProfilerActivity, profile

    from tprof.record import trace

    with profile(activities=[ProfilerActivity.CPU]), trace(tmp_path / "run", torch_profiler="cpu"):
        pass
    assert rundir.only(tmp_path / "run").notes == ["profiler-busy"]
    assert not list((tmp_path / "run").glob("*.torch.json.gz"))


def test_what_torch_profiler_warns_of_at_its_start_does_not_end_it(stub, tmp_path, monkeypatch):
    """Torch 2.11 does, of a second cycle that never comes; here, as under `python -W error`, warnings are errors."""
    import warnings

    from torch.profiler import profile

    from tprof.record import trace

    start = profile.start

    def warned(self):
        warnings.warn("Warning: Profiler clears events at the end of each cycle.", UserWarning, stacklevel=2)
        start(self)

    monkeypatch.setattr(profile, "start", warned)
    with trace(tmp_path / "run", torch_profiler="cpu"):
        pass
    assert rundir.only(tmp_path / "run").notes == []
    assert list((tmp_path / "run").glob("*.torch.json.gz"))
