from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tprof import nsys
from tprof.errors import SourceError
from tprof.read import nsys_cli

if TYPE_CHECKING:
    from pathlib import Path

WRITES = 'shift 2; [ "$1" = sqlite ] || exit 1; while [ "$1" != --output ]; do shift; done; echo data > "$2"'
WRITES_ARROW = 'shift 2; while [ "$1" != --output ]; do shift; done; mkdir "$2"; echo data > "$2"/StringIds.arrow'


def _program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "run 1.nsys-rep"
    path.write_bytes(b"report")
    return path


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    found: list[Path] = []
    monkeypatch.setattr(nsys_cli.nsys, "programs", lambda: found)
    return found


def test_a_report_is_exported_beside_nothing_of_the_user(tmp_path: Path, report: Path, programs: list[Path]) -> None:
    programs.append(_program(tmp_path / "nsys", WRITES))
    exported = nsys_cli.export_report(report)
    assert exported.read_text() == "data\n"
    assert exported.name == "run 1.sqlite"
    assert tmp_path not in exported.parents
    shutil.rmtree(exported.parent)


def test_the_type_that_reads_fastest_comes_first(tmp_path: Path, report: Path, programs: list[Path]) -> None:
    programs.append(_program(tmp_path / "nsys", WRITES_ARROW))
    exported = nsys_cli.export_report(report)
    assert exported.name == "run 1_arwdir"
    shutil.rmtree(exported.parent)


def test_without_nsys_the_command_to_run_is_named(report: Path, programs: list[Path]) -> None:
    assert not programs
    with pytest.raises(SourceError) as caught:
        nsys_cli.export_report(report)
    target = report.with_suffix(".sqlite")
    assert f"nsys export --type sqlite --force-overwrite true --output '{target}' '{report}'" in str(caught.value)


def test_a_capture_that_was_not_finalised(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="never finalised"):
        nsys_cli.export_report(tmp_path / "run.qdstrm")


def test_a_report_of_a_newer_version(tmp_path: Path, report: Path, programs: list[Path]) -> None:
    said = "Version number is invalid: 2025@6@1@190-256137369022v0"
    programs.append(_program(tmp_path / "nsys", f"echo Processing...; echo '{said}' >&2; exit 1"))
    with pytest.raises(SourceError) as caught:
        nsys_cli.export_report(report)
    assert str(caught.value) == f"{report}: nsys cannot export it ({said}); export it with nsys 2025.6.1 or newer"


def test_nsys_that_fails_and_returns_zero(tmp_path: Path, report: Path, programs: list[Path]) -> None:
    programs.append(_program(tmp_path / "nsys", "exit 0"))
    with pytest.raises(SourceError, match="ended with status 0 and said nothing"):
        nsys_cli.export_report(report)


def test_another_nsys_is_tried(tmp_path: Path, report: Path, programs: list[Path]) -> None:
    programs += [_program(tmp_path / "old", "exit 1"), tmp_path / "absent", _program(tmp_path / "new", WRITES)]
    exported = nsys_cli.export_report(report)
    assert exported.is_file()
    shutil.rmtree(exported.parent)


def test_where_nsys_is_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    old = _program(tmp_path / "usr/local/cuda-12.4/bin/nsys", "")
    new = _program(tmp_path / "opt/nvidia/nsight-systems/2025.3.2/target-linux-x64/nsys", "")
    (tmp_path / "opt/nvidia/nsight-systems/2025.3.2/nsys").mkdir()
    assert set(nsys.programs(tmp_path)) == {old, new}
    mine = _program(tmp_path / "bin/nsys", "")
    assert nsys.programs(tmp_path)[0] == mine
