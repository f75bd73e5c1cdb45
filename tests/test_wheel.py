"""What an install brings: three packages, the samples and nothing that shadows other people's imports."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tprof.samples import sample_paths

ROOT = Path(__file__).resolve().parents[1]
OURS = {"tprof", "tprof_app", "tprof_kernels"}


def _build(target: Path, hook: str) -> zipfile.ZipFile:
    code = f"from hatchling.build import {hook}; print({hook}({str(target)!r}))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return zipfile.ZipFile(target / done.stdout.split()[-1])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    with _build(tmp_path_factory.mktemp("wheel"), "build_wheel") as built:
        yield built


def test_wheel_brings_only_our_packages(wheel: zipfile.ZipFile) -> None:
    top = {name.split("/")[0] for name in wheel.namelist()}
    assert {name for name in top if not name.endswith(".dist-info")} <= OURS
    assert "tprof/py.typed" in wheel.namelist()


def test_wheel_brings_the_samples_and_not_their_scripts(wheel: zipfile.ZipFile) -> None:
    samples = {name for name in wheel.namelist() if name.startswith("tprof/samples/")}
    folder = ROOT / "sample_traces"
    there = [*folder.glob("*.gz"), *(path for said in folder.glob("*/run.json") for path in said.parent.iterdir())]
    assert samples == {f"tprof/samples/{path.relative_to(folder)}" for path in there}


def test_unpacked_wheel_finds_its_samples(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path)
    find = "import tprof.samples as s; print(*s.sample_paths().values())"
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {find}"
    done = subprocess.run([sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [Path(path).parent for path in done.stdout.split()] == [tmp_path / "tprof" / "samples"] * len(sample_paths())


def test_editable_install_exposes_only_our_packages(tmp_path: Path) -> None:
    with _build(tmp_path, "build_editable") as built:
        (finder,) = [name for name in built.namelist() if name.endswith(".py")]
        (start,) = [name for name in built.namelist() if name.endswith(".pth")]
        lines = built.read(start).decode().split("\n")
        mapped = [line for line in built.read(finder).decode().splitlines() if "map_module" in line]
    assert [line for line in lines if line] == [f"import {Path(finder).stem}"]
    assert {line.split("'")[1] for line in mapped if "'" in line} <= OURS
