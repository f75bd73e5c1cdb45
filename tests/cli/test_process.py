"""What only a real process shows: streams, pipes, terminals, start-up time."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

RUN = [sys.executable, "-m", "tprof"]


def run(root: Path, *arguments: object, **more: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [*RUN, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False, **more)


def test_stdout_is_the_result_and_nothing_else(root: Path, nsight: Path) -> None:
    done = run(root, "summary", nsight, "-f", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["devices"][0]["idle_ns"] == 24182048220


def test_a_closed_pipe_is_quiet(root: Path, nsight: Path) -> None:
    for verb in ("summary --format markdown", "kernels --format csv", "idle"):
        command = [*RUN, *verb.split(), str(nsight)]
        read, write = os.pipe()
        os.close(read)
        environment = {**os.environ, "PYTHONPATH": str(root)}
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, env=environment, check=False)
        os.close(write)
        assert (done.returncode, done.stderr) == (0, b"")


def test_parquet_does_not_go_to_a_terminal(root: Path, small: Path) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "PYTHONPATH": str(root)}
    command = [*RUN, "kernels", str(small), "-f", "parquet"]
    done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, text=True, env=environment, check=False)
    os.close(theirs)
    os.close(ours)
    assert done.returncode == 2
    assert "-o" in done.stderr


def test_parquet_goes_through_a_pipe(root: Path, small: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [*RUN, "kernels", str(small), "-f", "parquet"], capture_output=True, env=environment, check=True
    )
    assert done.stdout[:4] == done.stdout[-4:] == b"PAR1"


@pytest.mark.parametrize("source", ["h200-nsight.sqlite.gz", "h200-torch.json.gz", "cold-torch"])
def test_a_summary_does_not_wait_for_pandas(root: Path, source: str) -> None:
    code = "import sys; from tprof.cli import main; main(); print('pandas' in sys.modules, file=sys.stderr)"
    command = [sys.executable, "-c", code, "summary", str(root / "sample_traces" / source), "-f", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["devices"]
    assert done.stderr.split()[-1] == "False"


def test_help_imports_neither_a_table_library_nor_the_recorder(root: Path) -> None:
    heavy = {"numpy", "pandas", "pyarrow", "jinja2", "streamlit", "torch", "importlib.metadata", "tprof.record.session"}
    code = f"import sys; from tprof.cli import main; main(['-h']); print({heavy!r} & {{*sys.modules}}, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root, check=True)
    assert done.stderr.strip() == "set()"
