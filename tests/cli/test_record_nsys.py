"""`tprof record --nsys`, with an nsys made of shell where nothing else is said."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tprof.errors import TprofError
from tprof.record import nsys, support

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FAKE = """#!/bin/sh
case "$1" in
--version) echo "NVIDIA Nsight Systems version {version}";;
export) shift; echo "export $*" >>"{log}"
  while [ "$1" != --output ]; do shift; done
  echo "exported"; cp "{exported}" "$2";;
profile) shift
  if [ "$1" = --help ]; then echo "--trace= --sample= --wait= --force-overwrite"; exit; fi
  echo "profile $*" >>"{log}"; echo "Generating"; echo "noise" >&2
  while [ "$1" != --output ]; do shift; done
  {report}; shift 2
  "$@"; exit $?;;
esac
"""


@pytest.fixture
def fake(tmp_path: Path) -> Callable[..., Path]:
    """An nsys in a folder of its own; what it was asked is in `asked`, what it exports in `exported`."""
    with sqlite3.connect(tmp_path / "exported") as database:
        database.execute("CREATE TABLE StringIds (id, value)")
    database.close()

    def make(version: str = "2025.3.1.90-abc", folder: str = "bin", report: str = 'echo report >"$2.nsys-rep"') -> Path:
        program = tmp_path / folder / "nsys"
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(
            FAKE.format(version=version, log=tmp_path / "asked", exported=tmp_path / "exported", report=report)
        )
        program.chmod(0o755)
        return program

    return make


def run(root: Path, folder: Path, *arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "tprof", "record", "--nsys", *map(str, arguments)]
    env = {**os.environ, "PYTHONPATH": str(root), "PATH": f"{folder / 'bin'}:/usr/bin:/bin", **env}
    return subprocess.run(line, capture_output=True, text=True, env=env, cwd=folder, timeout=60, check=False)


def test_the_command_runs_within_nsys_and_its_output_stays_its_own(fake: Callable, root: Path, tmp_path: Path) -> None:
    fake(version="2099.1.1.1-abc")
    code = """
import os, sys
print("out", os.environ["TPROF_TORCH_PROFILER"])
print("err", file=sys.stderr)
sys.exit(6)
"""
    done = run(root, tmp_path, "-o", "run", "--torch-profiler", "gpu", "--", sys.executable, "-c", code)
    assert (done.returncode, done.stdout) == (6, "out cpu\n")
    assert done.stderr.splitlines()[0] == "err"
    assert "torch.profiler records the CPU only" in done.stderr
    assert len(done.stderr.splitlines()) == 2
    profiled, *_, exported = (tmp_path / "asked").read_text().splitlines()
    assert profiled.startswith(
        "profile --trace=cuda,nvtx,osrt --sample=none --wait=primary --force-overwrite=true --output "
    )
    assert "--cuda-graph-trace" not in profiled  # this version knows no such flag
    assert exported.startswith("export --type sqlite --force-overwrite true --output ")
    files = {f.name: stat.S_IMODE(f.stat().st_mode) for f in (tmp_path / "run").iterdir()}
    assert files == dict.fromkeys(("nsight.log", "nsight.nsys-rep", "nsight.sqlite", "run.json", "started"), 0o600)
    assert (tmp_path / "run" / "nsight.log").read_text() == "Generating\nnoise\n"


def test_a_capture_that_leaves_no_report(fake: Callable, root: Path, tmp_path: Path) -> None:
    fake(version="2099.1.1.1-abc", report='touch "$2.qdstrm"')
    done = run(root, tmp_path, "-o", "run", "--", "true")
    assert "Nsight Systems left only the unfinished nsight.qdstrm" in done.stderr


def test_an_nsys_that_goes_on_after_the_command_is_named_once(tmp_path: Path) -> None:
    said: list[str] = []
    finishing = nsys.Finishing(tmp_path, said.append, patience=0.0)
    finishing()  # the command has not begun
    with subprocess.Popen(["sleep", "60"]) as command:
        (tmp_path / "target").write_text(f"{command.pid}\n")
        finishing()
        assert nsys.running(tmp_path) == command.pid
        assert not said
        command.kill()
    finishing()
    finishing()
    assert nsys.running(tmp_path) is None
    assert len(said) == 1
    assert "Nsight Systems is still at it" in said[0]


def test_without_nsys_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert nsys.find(tmp_path) == []
    with pytest.raises(TprofError, match=r"not on this machine.*Nsight Compute 2025\.3 or newer; or leave out --nsys"):
        nsys.usable(tmp_path)


def test_the_newest_that_works_is_used(fake: Callable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake("2022.4.2.1-df9881f")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    compute = "usr/local/cuda-13.0/nsight-compute-2025.3.1/host"
    fake("2025.3.2.474-x", f"{compute}/target-linux-x64")
    fake("2025.1.1.1-y", "opt/nvidia/nsight-systems/2025.1.1/target-linux-x64")
    assert [n.version for n in nsys.find(tmp_path)] == ["2025.3.2.474", "2025.1.1.1", "2022.4.2.1"]
    importer = tmp_path / compute / "linux-desktop-glibc_2_11_3-x64" / "QdstrmImporter"
    importer.parent.mkdir(parents=True)
    importer.write_text('#!/bin/sh\necho "QdstrmImporter: libdw.so.1: cannot open shared object file" >&2; exit 127\n')
    importer.chmod(0o755)
    assert nsys.usable(tmp_path).version == "2025.1.1.1"
    last = nsys.find(tmp_path)[-1]
    assert (last.version, last.problem) == (
        "2025.3.2.474",
        f"cannot write reports without libdw.so.1: {nsys.LIBRARIES}",
    )


def test_ranges_are_looked_for_in_the_export(tmp_path: Path) -> None:
    for i, (table, column) in enumerate([("StringIds", "value"), ("NVTX_EVENTS", "text"), ("StringIds", "value")]):
        path = tmp_path / f"{i}.sqlite"
        name = "tprof::clock:1:2" if i < 2 else "other"
        with sqlite3.connect(path) as database:
            database.execute(f"CREATE TABLE {table} ({column})")
            database.execute(f"INSERT INTO {table} VALUES (?)", [name])
        database.close()
        assert nsys.ranges_arrived(path) == (i < 2)


@pytest.mark.parametrize(
    ("nvtx", "nsight", "advised"),
    [
        ("0.2.17", "2024.2.3.38-a", "pip install 'nvtx<0.2.12'"),
        ("0.2.12", "2022.4.2.1", "or use Nsight Systems 2024.3 or newer"),
        ("0.2.17", "2024.3.1", ""),
        ("0.2.11", "2022.4.2.1", ""),
        ("0.2.17", None, ""),
        (None, None, "pip install nvtx"),
    ],
)
def test_which_nvtx_shows_its_ranges_to_which_nsight(nvtx: str | None, nsight: str | None, advised: str) -> None:
    found = support.nvtx_advice(nvtx, nsight)
    assert advised in found
    assert bool(advised) == bool(found)


def test_an_agent_that_outlives_its_nsys_is_ended_and_no_other() -> None:
    sleep = [sys.executable, "-c", "import time; print(flush=True); time.sleep(60)", "--start-agent"]
    names = (f"--session-name=tprof-{os.getpid()}", "--session-name=tprof-1")
    ours, other = (subprocess.Popen([*sleep, name], stdout=subprocess.PIPE) for name in names)
    with ours, other:
        for process in (ours, other):
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n"
        nsys.end_agents()
        assert ours.wait(10) == -signal.SIGKILL
        assert other.poll() is None
        other.kill()


REAL = next((n for n in nsys.find() if not n.problem), None)


@pytest.mark.skipif(REAL is None, reason="no Nsight Systems here")
def test_a_real_nsys(root: Path, tmp_path: Path) -> None:
    code = "import os, sys; print(os.getpid()); sys.exit(3)"
    options = ("-o", "run", "--force", "--", sys.executable, "-c", code)
    done = run(root, tmp_path, *options, PATH=os.environ["PATH"])
    if "did not start the command" in done.stderr:  # now and then its agent does not come up
        done = run(root, tmp_path, *options, PATH=os.environ["PATH"])
    assert done.returncode == 3
    assert done.stdout.strip().isdigit()
    assert done.stderr.splitlines()[-1].startswith("tprof: run: nothing recorded; note: no triton was imported")
    with sqlite3.connect(tmp_path / "run" / "nsight.sqlite") as database:
        pids = {row[0] >> 24 & 0xFFFFFF for row in database.execute("SELECT DISTINCT globalTid FROM OSRT_API")}
    database.close()
    assert int(done.stdout) in pids
    assert not (tmp_path / "run" / "target").exists()
