"""`tprof record` around programs that know neither tprof nor Triton: what passes through, and what is refused."""

from __future__ import annotations

import json
import os
import pty
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from support.terminal import read_terminal

from tprof.record import command, outdir
from tprof.record.bootstrap import FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RECORD = [sys.executable, "-m", "tprof", "record"]
PYTHON = sys.executable


@pytest.fixture
def environment(root: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    monkeypatch.delenv("TPROF_RECORD", raising=False)
    return {**os.environ, "PYTHONPATH": str(root)}


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
        line = [*RECORD, *map(str, arguments)]
        env = {**environment, **env}
        return subprocess.run(line, capture_output=True, text=True, env=env, cwd=tmp_path, timeout=60, check=False)

    return run


def test_output_and_exit_code_are_the_commands_own(run: Callable, tmp_path: Path) -> None:
    code = "import sys; print('out'); print(sys.stdin.read(), file=sys.stderr); sys.exit(7)"
    done = run("-o", "run", "--", PYTHON, "-c", code)
    assert (done.returncode, done.stdout) == (7, "out\n")
    assert done.stderr.splitlines()[-1] == "tprof: run: nothing recorded; note: no triton was imported"
    assert sorted(f.name for f in (tmp_path / "run").iterdir()) == ["run.json", "started"]
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    assert [why for _, _, why in outdir.started(tmp_path / "run")] == ["started"]


def test_options_after_the_command_are_the_commands_own(run: Callable) -> None:
    done = run("-o", "run", PYTHON, "-c", "import sys; print(sys.argv[1:])", "-o", "--force", "--", "-h")
    assert done.stdout == "['-o', '--force', '--', '-h']\n"


def test_a_command_that_a_signal_ends(run: Callable) -> None:
    done = run("-o", "run", "--", "sh", "-c", "kill -9 $$")
    assert done.returncode == 128 + signal.SIGKILL
    assert "no Python process was started" in done.stderr


WAITS = """
import signal, sys, time
def leave(number, _): print(signal.Signals(number).name, flush=True); sys.exit(number)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, leave)
print("ready", flush=True)
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signals_are_passed_on(number: signal.Signals, environment: dict[str, str], tmp_path: Path) -> None:
    line = [*RECORD, "-o", str(tmp_path / "run"), "--", PYTHON, "-c", WAITS]
    with subprocess.Popen(
        line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(number)
        assert running.stdout.read() == f"{number.name}\n"
    assert running.returncode == number


def test_a_signal_that_the_command_does_not_handle(environment: dict[str, str], tmp_path: Path) -> None:
    line = [*RECORD, "-o", str(tmp_path / "run"), "--", "sh", "-c", "echo ready; exec sleep 60"]
    with subprocess.Popen(
        line, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.terminate()
    assert running.returncode == 128 + signal.SIGTERM


def test_signals_reach_the_command_as_they_were(run: Callable) -> None:
    masks = "print(*[l.split()[1] for l in open('/proc/self/status') if l.startswith('SigBlk')])"
    assert int(run("-o", "run", "--", PYTHON, "-c", masks).stdout, 16) == 0


def test_ctrl_c_reaches_the_command_once(environment: dict[str, str], tmp_path: Path) -> None:
    code = """
import signal, time
count = []
signal.signal(signal.SIGINT, lambda *_: count.append(1))
print("ready", flush=True)
time.sleep(1.5)
print("got", len(count), flush=True)
"""
    pid, terminal = pty.fork()
    if not pid:
        os.execve(PYTHON, [*RECORD, "-o", str(tmp_path / "run"), "--", PYTHON, "-c", code], environment)
    said = b""
    while b"tprof: " not in said:
        said += read_terminal(terminal)
        if said.endswith(b"ready\r\n"):
            os.write(terminal, b"\x03")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert b"got 1" in said
    os.close(terminal)


def test_variables_are_the_defaults_of_options(run: Callable, tmp_path: Path) -> None:
    code = (
        "import os; print(*[os.environ['TPROF_' + name] for name in ('TORCH_PROFILER', 'SHAPES', 'NVTX', 'INTERVAL')])"
    )
    variables = {"TPROF_TORCH_PROFILER": "cpu", "TPROF_SHAPES": "always", "TPROF_NVTX": "0", "TPROF_INTERVAL": "0.1"}
    done = run("-o", "run", "--shapes", "first", "--", PYTHON, "-c", code, **variables)
    assert done.stdout == "cpu first 0 0.1\n"
    said = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert (said["torch_profiler"], said["shapes"], said["nvtx"], said["interval"]) == ("cpu", "first", False, 0.1)


def test_a_reader_of_stderr_that_has_gone_costs_no_exit_code(environment: dict[str, str], tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    line = [*RECORD, "-o", str(tmp_path / "run"), "--", "sh", "-c", "exit 9"]
    assert subprocess.run(line, env=environment, stderr=write, check=False).returncode == 9
    os.close(write)


def test_a_command_that_is_not_there(run: Callable, tmp_path: Path) -> None:
    done = run("-o", "run", "--", "no-such-program")
    assert (done.returncode, done.stderr) == (127, "tprof: no-such-program: not found; check its name and PATH\n")
    (tmp_path / "data").write_text("")
    assert run("-o", "run", "--", "./data").returncode == 126
    assert run("-o", "run", "--nosuch").returncode == 2
    assert run("-o", "run").returncode == 2
    assert not (tmp_path / "run").exists()


def test_only_a_run_is_replaced_and_only_by_force(run: Callable, tmp_path: Path) -> None:
    assert run("-o", "run", "--", "true").returncode == 0
    again = run("-o", "run", "--", "true")
    assert again.returncode == 2
    assert "holds a run already; give --force" in again.stderr
    (tmp_path / "run" / "process-1.jsonl").write_text("old")
    assert run("-o", "run", "--force", "--", "true").returncode == 0
    assert [f.name for f in (tmp_path / "run").iterdir()] == ["run.json"]
    (tmp_path / "run" / "thesis.txt").write_text("precious")
    refused = run("-o", "run", "--force", "--", "true")
    assert refused.returncode == 2
    assert "'thesis.txt'" in refused.stderr
    assert (tmp_path / "run" / "run.json").exists()
    (tmp_path / "folder" / "run.json").mkdir(parents=True)
    assert run("-o", "folder", "--force", "--", "true").returncode == 2
    (tmp_path / "empty").mkdir(mode=0o755)
    assert run("-o", "empty", "--", "true").returncode == 0
    assert (tmp_path / "empty").stat().st_mode & 0o777 == 0o700
    assert run("-o", "folder/run.json/x/../../../file", "--", "touch", "file").returncode == 0


def test_a_recording_in_a_recording_joins_it(run: Callable, tmp_path: Path) -> None:
    inner = [
        *RECORD,
        "-o",
        "inner",
        "--",
        PYTHON,
        "-c",
        "import os, sys; print(os.environ['TPROF_RECORD']); sys.exit(4)",
    ]
    done = run("-o", "outer", "--", *inner)
    assert done.returncode == 4
    assert done.stdout == f"{tmp_path / 'outer'}\n"
    assert "is recorded into" in done.stderr
    assert not (tmp_path / "inner").exists()


def test_the_next_sitecustomize_runs_and_sees_nothing_of_ours(run: Callable, root: Path, tmp_path: Path) -> None:
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "sitecustomize.py").write_text(
            f"import sys\nsys.customized = {folder!r}, __file__, __name__\n"
        )
    code = "import sys, sitecustomize as s; print(*sys.customized, s.__file__, s.__spec__.origin, sep='\\n')"
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "first"), str(tmp_path / "second"), str(root)])}
    file = str(tmp_path / "first" / "sitecustomize.py")
    done = run("-o", "run", "--", PYTHON, "-c", code, **env)
    assert done.stdout.split() == ["first", file, "sitecustomize", file, file]
    (tmp_path / "first" / "sitecustomize.py").write_text("raise ZeroDivisionError('theirs')\n")
    done = run("-o", "run2", "--", PYTHON, "-c", "print('goes on')", **env)
    assert done.stdout == "goes on\n"
    assert "ZeroDivisionError: theirs" in done.stderr  # as Python says it without us
    assert [why for _, _, why in outdir.started(tmp_path / "run2")] == ["started"]


def test_usercustomize_runs_as_usual(run: Callable, tmp_path: Path) -> None:
    site = tmp_path / "base" / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    site.mkdir(parents=True)
    (site / "usercustomize.py").write_text("print('user')\n")
    code = "import site, sys; print(site.ENABLE_USER_SITE)"
    plain = subprocess.run(
        [PYTHON, "-c", code], env={"PYTHONUSERBASE": str(tmp_path / "base")}, capture_output=True, text=True, check=True
    )
    done = run("-o", "run", "--", PYTHON, "-c", code, PYTHONUSERBASE=str(tmp_path / "base"))
    assert done.stdout == plain.stdout


def test_an_empty_python_path_stays_empty(tmp_path: Path) -> None:
    for base in ({}, {"PYTHONPATH": ""}):
        assert command.environment(tmp_path, base)["PYTHONPATH"] == str(FOLDER)
    assert command.environment(tmp_path, {"PYTHONPATH": "/a:/b"}, shapes="always") == {
        "PYTHONPATH": f"{FOLDER}:/a:/b",
        "TPROF_RECORD": str(tmp_path),
        "TPROF_DIR": str(tmp_path),
        "TPROF_SHAPES": "always",
    }


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ("python -I x.py", "I"),
        ("python3.12 -uE -m pkg -S", "E"),
        ("/usr/bin/python3 -W ignore -S x.py", "S"),
        ("python -Wignore -X dev x.py -I", ""),
        ("python -c pass -I", ""),
        ("python -bIs -c pass", "I"),
        ("true -I", ""),
        ("./script", "E"),
        ("./other", ""),
    ],
)
def test_flags_that_keep_python_from_recording(
    line: str, flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, shebang in {"script": "#!/usr/bin/env -S python3 -sE", "other": "#!/bin/sh -E"}.items():
        (tmp_path / name).write_text(f"{shebang}\n")
        (tmp_path / name).chmod(0o755)
    assert command.blind_flags(shlex.split(line)) == flags


def test_python_that_ignores_its_environment_is_named(run: Callable) -> None:
    done = run("-o", "run", "--", PYTHON, "-I", "-c", "print('ran')")
    assert done.stdout == "ran\n"
    assert "python -I ignores what makes it record: leave that flag out" in done.stderr


@pytest.fixture
def bare(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run code beneath a recording in the Python that this environment was made from: it knows no tprof."""
    base = os.path.realpath(PYTHON)
    if subprocess.run([base, "-c", "import tprof"], capture_output=True, cwd="/", env={}, check=False).returncode == 0:
        pytest.skip("tprof is installed in the Python itself")
    (tmp_path / "run").mkdir()

    def run(code: str, **packages: str) -> subprocess.CompletedProcess[str]:
        for name, text in packages.items():
            (tmp_path / "lib" / name).mkdir(parents=True)
            (tmp_path / "lib" / name / "__init__.py").write_text(text)
        env = command.environment(tmp_path / "run", {"PYTHONPATH": str(tmp_path / "lib")})
        return subprocess.run([base, "-c", code], env=env, cwd="/", capture_output=True, text=True, check=False)

    return run


def test_another_environment_finds_the_recorder(bare: Callable, root: Path, tmp_path: Path) -> None:
    code = """
import triton, sys
left = [type(finder).__name__ for finder in sys.meta_path if "sitecustomize" in str(finder)]
print(sys.modules["tprof"].__file__, vars(triton.__loader__).get("exec_module"), *left)
"""
    done = bare(code, triton="__version__ = '3.6.0'\n")
    # the watcher goes on: imports after Triton's are part of the start-up too
    assert done.stdout.split() == [str(root / "tprof" / "__init__.py"), "None", "Watcher"]
    (journal,) = (tmp_path / "run").glob("process-*.jsonl")
    assert '"triton":"3.6.0"' in journal.read_text()


def test_an_import_of_triton_that_fails_is_not_ours(bare: Callable) -> None:
    code = """
import sys
try: import triton
except ImportError as error: print(error)
print(*[name for name in sys.modules if "tprof" in name])
"""
    assert bare(code, triton="raise ImportError('wrong machine')\n").stdout == "wrong machine\n\n"


def test_another_project_of_the_name_is_left_alone(bare: Callable, tmp_path: Path) -> None:
    done = bare("import triton, tprof; print(tprof.__file__)", triton="", tprof="")
    assert (done.stdout.strip(), done.stderr) == (str(tmp_path / "lib" / "tprof" / "__init__.py"), "")
    assert [why for _, _, why in outdir.started(tmp_path / "run")] == ["started", "another-tprof"]


@pytest.mark.parametrize(("torch", "platform"), [("2.9.0+rocm6.4", "ROCm"), ("2.9.0+xpu", "XPU")])
def test_platforms_that_are_refused(torch: str, platform: str, bare: Callable, tmp_path: Path) -> None:
    info = tmp_path / "lib" / "torch-2.9.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {torch}\n")
    done = bare("import triton; print('goes on')", triton="")
    assert done.stdout == "goes on\n"
    assert f"torch {torch} is for {platform}, on which recording is untested and refused" in done.stderr
    assert not list((tmp_path / "run").glob("process-*"))
    assert [why for _, _, why in outdir.started(tmp_path / "run")] == ["started", "refused"]


def test_a_process_without_triton_pays_nothing(
    environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def start_ms(env: dict[str, str]) -> float:
        begun = time.perf_counter()
        subprocess.run([PYTHON, "-c", "pass"], env=env, check=True)
        return 1000 * (time.perf_counter() - begun)

    recorded = command.environment(tmp_path, environment)
    times = [(start_ms(environment), start_ms(recorded)) for _ in range(10)]
    plain, ours = (min(column) for column in zip(*times, strict=True))
    with capsys.disabled():
        sys.stdout.write(f"\n  Python starts in {plain:.1f} ms, beneath tprof record in {ours:.1f} ms\n")
    assert ours - plain < 30
    code = "import sys; print(*sorted(sys.modules))"
    modules = [
        set(subprocess.run([PYTHON, "-c", code], env=env, capture_output=True, text=True, check=True).stdout.split())
        for env in (environment, recorded)
    ]
    assert modules[1] - modules[0] <= {"sitecustomize", "__future__"}
