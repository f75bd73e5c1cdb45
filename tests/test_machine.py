"""Machine code is used only where it pays, and only code that this user compiled is run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.skips import needs_numba

from tprof import machine
from tprof.errors import UsageError
from tprof.read import torch_scan_columns
from tprof.read.torch_scan_columns import SCAN, choose

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("code_folder")


def run(code: str, root: Path) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.split()


@needs_numba
def test_small_files_load_nothing(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(json.dumps([{"ph": "X", "cat": "cpu_op", "name": "a", "pid": 1, "tid": 1, "ts": 1, "dur": 1}] * 9))
    code = f"import sys, tprof; tprof.load({str(path)!r}); print({{'llvmlite', 'numba'}} & set(sys.modules))"
    assert run(code, root) == ["set()"]


@needs_numba
def test_compiled_code_is_used_without_numba(root: Path) -> None:
    assert machine.load(SCAN, compile_it=True)
    code = (
        "import sys; from tprof.read.torch_scan_columns import LOAD_BYTES, choose; "
        "print(choose(LOAD_BYTES - 1), choose(LOAD_BYTES)[0].read(b'[{}]' + bytes(32)) is not None); "
        "print('numba' in sys.modules)"
    )
    assert run(code, root) == ["[]", "True", "False"]


@needs_numba
def test_off_means_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPROF_SCANNER", "off")
    assert choose(1 << 40) == []


@needs_numba
def test_nothing_is_compiled_for_a_file_that_does_not_pay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPROF_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(machine, "load", None)
    assert choose(torch_scan_columns.COMPILE_BYTES - 1) == []


def test_a_wrong_setting_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TPROF_SCANNER", "yes")
    with pytest.raises(UsageError, match="use on, off or auto"):
        choose(1)


def test_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "can_compile", lambda: False)
    assert choose(1 << 40) == []
    monkeypatch.setenv("TPROF_SCANNER", "on")
    with pytest.raises(UsageError, match=r"triton-tprof\[fast\]"):
        choose(1)


@needs_numba
@pytest.mark.parametrize("spoil", ["content", "mode", "owner"])
def test_code_of_others_and_damaged_code_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: str
) -> None:
    path = tmp_path / "scan-0.o"
    machine._keep(path, b"code")
    assert machine._kept(path) == b"code"
    if spoil == "content":
        path.write_bytes(path.read_bytes()[:-1])
    elif spoil == "mode":
        path.chmod(0o620)
    else:
        monkeypatch.setattr(os, "getuid", lambda: path.stat().st_uid + 1)
    assert machine._kept(path) is None


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    machine._keep(tmp_path / "file" / "scan-0.o", b"code")
    assert machine._kept(tmp_path / "file" / "scan-0.o") is None
