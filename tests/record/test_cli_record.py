"""`tprof record` around a server that never heard of tprof: every process that uses Triton is recorded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support import rundir
from support.record_server import WAYS
from support.skips import needs_triton

from tprof.record import live

ROOT = Path(__file__).resolve().parents[2]
pytest.importorskip("typer", reason="the command line is not installed here")
pytestmark = needs_triton


@pytest.fixture
def record(shared_cache, monkeypatch):
    """`record(run, command, **env)`: the command beneath `tprof record`, with the tests' helpers importable."""
    monkeypatch.delenv("TPROF_RECORD", raising=False)

    def run(out: Path, *command: object, options: tuple = (), background: bool = False, **env: str):
        paths = [str(ROOT), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "TRITON_CACHE_DIR": str(shared_cache), "PYTHONPATH": os.pathsep.join(paths), **env}
        line = [sys.executable, "-m", "tprof", "record", "-o", str(out), *options, "--", *map(str, command)]
        if background:
            return subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=120, check=False)

    return run


def test_every_worker_of_a_server_is_recorded(record, tmp_path):
    done = record(tmp_path / "run", sys.executable, "-m", "support.record_server")
    assert done.returncode == 5, done.stderr
    workers = {int(pid): way for pid, way in map(str.split, done.stdout.splitlines())}
    assert sorted(workers.values()) == sorted(WAYS)
    processes = {p.of("process")[0]["pid"]: p for p in rundir.read_run(tmp_path / "run")}
    assert set(processes) == set(workers)  # and not the parent, which never imports Triton
    for pid, process in processes.items():
        assert [len(process.kind(kind)) for kind in ("jit", "load")] == [1, 1], workers[pid]
        assert len(process.launches) == 1
        assert len(process.of("close")) == 1
        assert process.notes == []
    assert "4 processes recorded, " in done.stderr
    assert done.stderr.rstrip().endswith(f"look at it with: tprof summary {tmp_path / 'run'}")


def test_a_forked_child_of_a_recorded_process_goes_on(record, tmp_path):
    code = "from support.record_server import main, work; work('parent'); main(['fork', 'spawn'])"
    done = record(tmp_path / "run", sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    processes = rundir.read_run(tmp_path / "run")
    parent = processes[0].of("process")[0]["pid"]
    assert [p.of("process")[0]["forked_from"] for p in processes] == [None, parent, None]
    assert [len(p.launches) for p in processes] == [1, 1, 1]


def test_options_reach_every_process(record, tmp_path):
    options = ("--shapes", "always", "--no-nvtx", "--torch-profiler", "cpu")
    done = record(tmp_path / "run", sys.executable, "-m", "support.record_server", "spawn", options=options)
    assert done.returncode == 5, done.stderr
    said = live.Watch(tmp_path / "run").look()["processes"]
    assert len(said) == 1
    text = (tmp_path / "run" / "run.json").read_text()
    assert '"shapes": "always"' in text
    assert '"nvtx": false' in text
    assert len(list((tmp_path / "run").glob("*.torch.json.gz"))) == 1


def test_a_trace_within_joins(record, tmp_path):
    code = """
import tprof.record
from support.record_server import work
with tprof.record.trace("elsewhere"), tprof.record.request("generate", id="r1"):
    work("traced")
work("untraced")
"""
    done = record(tmp_path / "run", sys.executable, "-c", code)
    assert done.returncode == 0, done.stderr
    process = rundir.only(tmp_path / "run")
    assert [bool(launch["request"]) for launch in process.launches] == [True, False]
    assert not Path("elsewhere").exists()


def test_requests_of_a_process_without_triton_are_recorded(record, tmp_path):
    code = """
import sys, tprof.record
with tprof.record.request("route", id="r1"): print("triton" in sys.modules)
from support.record_server import work
work("later")
"""
    done = record(tmp_path / "run", sys.executable, "-c", code)
    assert done.stdout.split()[0] == "False"
    process = rundir.only(tmp_path / "run")
    assert [len(process.kind(kind)) for kind in ("request", "jit", "load")] == [1, 1, 1]
    assert len(process.launches) == 1


def _slow_ptxas(folder: Path) -> dict[str, str]:
    """Environment with a ptxas that hangs, and an empty cache."""
    import triton

    real = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "ptxas"
    slow = folder / "ptxas"
    version = f'case "$*" in *--version*) exec {real} --version;; esac'
    slow.write_text(f"#!/bin/sh\n{version}\necho $$ >{folder}/hung\nexec sleep 60\n")
    slow.chmod(0o755)
    names = ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH")
    return {**dict.fromkeys(names, str(slow)), "TRITON_CACHE_DIR": str(folder / "cache")}


def _hung(folder: Path) -> int:
    """Pid of the ptxas that hangs."""
    end = time.monotonic() + 60
    while not ((folder / "hung").exists() and (folder / "hung").read_text().endswith("\n")):
        assert time.monotonic() < end
        time.sleep(0.05)
    time.sleep(0.5)  # LLVM has taken SIGUSR1 meanwhile, and we have taken it back
    return int((folder / "hung").read_text())


def test_a_hung_compile_is_seen_from_outside_by_signal_and_after_kill_9(record, tmp_path):
    env = _slow_ptxas(tmp_path)
    code = """
import tprof.record, support.record_server as server
with tprof.record.request("generate", id="r1"): server.work("slow")
"""
    with record(tmp_path / "run", sys.executable, "-c", code, background=True, **env) as running:
        ptxas = _hung(tmp_path)
        look = live.Watch(tmp_path / "run").look()
        (row,) = look["now"]
        assert [(s["kind"], s["name"]) for s in row["what"]] == [("jit", "add"), ("stage", "add/cubin")]
        assert (row["state"], row["request"], row["request_id"]) == ("running", "generate", "r1")
        assert 0.4e9 < row["for_ns"] < 60e9
        os.kill(row["pid"], signal.SIGUSR1)
        time.sleep(0.6)
        os.kill(row["pid"], signal.SIGKILL)
        os.kill(ptxas, signal.SIGKILL)
        said = running.stderr.read()
    assert running.returncode == 128 + signal.SIGKILL
    assert f"tprof, pid {row['pid']}: 1 process, 1 running; 0 compiles" in said
    assert "MainThread: compiling add > stage add/cubin, for request generate r1" in said
    assert f"pid {row['pid']} was killed while stage add/cubin" in said.splitlines()[-1]
    top = [sys.executable, "-m", "tprof", "top", "--once", str(tmp_path / "run")]
    after = subprocess.run(top, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert "KILLED IN compiling add > stage add/cubin" in after.stdout


def test_sigterm_goes_to_the_command(record, tmp_path):
    code = """
import time
from support.record_server import work
work("server")
time.sleep(0.6)
print("up", flush=True)
time.sleep(20)
"""
    with record(tmp_path / "run", sys.executable, "-c", code, background=True) as running:
        assert running.stdout.readline().endswith("server\n")
        assert running.stdout.readline() == "up\n"
        running.terminate()
    assert running.returncode == 128 + signal.SIGTERM
    process = rundir.only(tmp_path / "run")
    assert (len(process.launches), process.of("close")) == (1, [])


def test_a_signal_that_the_program_takes_is_left_alone(record, tmp_path):
    code = """
import os, signal, time
from support.record_server import work
if {first}: signal.signal(signal.SIGUSR1, lambda *_: print("theirs", flush=True))
work("server")
if not {first}: signal.signal(signal.SIGUSR1, lambda *_: print("theirs", flush=True))
time.sleep(0.6)
os.kill(os.getpid(), signal.SIGUSR1)
time.sleep(0.6)
"""
    for first in (False, True):
        out = tmp_path / f"run-{first}"
        done = record(out, sys.executable, "-c", code.format(first=first))
        assert done.stdout.splitlines()[-1] == "theirs" or first  # LLVM takes it from whoever was first: not our doing
        assert "tprof, pid" not in done.stderr


def test_recording_is_light(python, tmp_path):
    heavy = ("numpy", "pandas", "pyarrow", "plotly", "streamlit", "rich", "typer", "jinja2", "msgspec")
    code = f"""
import gc, sys, time
import torch, triton
gc.disable()  # a pass over torch's objects takes 60 ms, and is due at any line
before, begun = set(sys.modules), time.process_time()
import tprof.record.autoload
took = 1000 * (time.process_time() - begun)
print(took, *sorted(set({heavy!r}) & (set(sys.modules) - before)))
"""
    # as for a user, modules are compiled once: the first of the four pays for it
    bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tmp_path)}
    took, *pulled = min((python(code, **bytecode).stdout.split() for _ in range(4)), key=lambda words: float(words[0]))
    sys.stdout.write(f"recording imports in {float(took):.1f} ms beyond torch and triton\n")
    assert pulled == []
    assert float(took) < 50


def test_what_start_up_imported_and_since_when_is_recorded(record, tmp_path):
    (tmp_path / "slow.py").write_text("import time; time.sleep(0.05); import inner")
    (tmp_path / "inner.py").write_text("import time; time.sleep(0.02)")
    code = "import slow, triton, tprof; tprof.ready(); from support.record_server import work; work('here')"
    done = record(tmp_path / "run", sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {code}")
    assert done.returncode == 0, done.stderr
    process = rundir.only(tmp_path / "run")
    (said,), (up,) = process.of("process"), process.of("interpreter")
    assert said["started_ns"] <= up["t_ns"]
    imports = {r["name"]: r for r in process.of("import")}
    assert imports["slow"]["end_ns"] - imports["slow"]["t_ns"] > 70_000_000
    assert "triton" in imports
    assert "inner" not in imports  # it was imported by one that is timed
    (ready,) = process.of("mark")
    assert all(up["t_ns"] <= imports[n]["t_ns"] < imports[n]["end_ns"] < ready["t_ns"] for n in ("slow", "triton"))
