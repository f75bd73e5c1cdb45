"""The rules of the house: which way the arrows point, how long things are, what may print, and what an import costs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = [ROOT / "tprof", *(ROOT / "apps").glob("tprof_app"), ROOT / "kernels" / "tprof_kernels"]
MODULES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
SOURCES = sorted(
    {*MODULES, *(p for d in ("tests", "docs", "sample_traces", "benchmarks") for p in (ROOT / d).rglob("*.py"))}
)
MAY_PRINT = ("tprof/cli/", "tprof/present/", "apps/tprof_app/")
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)

each_module = pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
each_source = pytest.mark.parametrize("path", SOURCES, ids=lambda p: str(p.relative_to(ROOT)))


def _nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def _names(node: ast.expr | None) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} if node else {"bare"}


def _tracked() -> list[Path]:
    """Files of the repository; where there is no git, everything that is not hidden."""
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listing.returncode:
        return [
            p for p in ROOT.rglob("*") if p.is_file() and not any(x.startswith(".") for x in p.relative_to(ROOT).parts)
        ]
    return [ROOT / name for name in listing.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_arrows_point_one_way() -> None:
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


def test_readers_of_two_formats_do_not_know_each_other() -> None:
    formats = ("torch", "nsight")
    for path in (ROOT / "tprof" / "read").rglob("*.py"):
        own = [f for f in formats if path.stem.startswith(f)]
        imported = {n.module or "" for n in _nodes(path) if isinstance(n, ast.ImportFrom)}
        other = [m for m in imported if own and m.split(".")[-1].startswith(tuple(f for f in formats if f not in own))]
        assert not other, f"{path.name} imports {other}"


@each_module
def test_only_the_edges_print(path: Path) -> None:
    if str(path.relative_to(ROOT)).startswith(MAY_PRINT):
        return
    assert not [n.lineno for n in _nodes(path) if isinstance(n, ast.Name) and n.id == "print"]


@each_module
def test_no_broad_except(path: Path) -> None:
    guard = path == ROOT / "tprof" / "record" / "guard.py"  # a failing hook must not raise into the workload
    handlers = [n for n in _nodes(path) if isinstance(n, ast.ExceptHandler)]
    broad = [h.lineno for h in handlers if _names(h.type) & {"bare", "Exception", "BaseException"}]
    assert len(broad) <= guard


@each_source
def test_functions_fit_on_a_screen(path: Path) -> None:
    functions = [n for n in _nodes(path) if isinstance(n, FUNCTION)]
    assert not [f"{f.name}: {f.end_lineno - f.lineno + 1} lines" for f in functions if f.end_lineno - f.lineno >= 60]


@each_source
def test_files_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400


def test_no_path_of_a_machine() -> None:
    absolute = re.compile(r"""(?<![\w.~*)\]}-])/(home|root|work|Users|mnt)/\w""")
    found = {}
    for path in _tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:  # a recording
            continue
        if lines := [n for n, line in enumerate(text.splitlines(), 1) if absolute.search(line)]:
            found[str(path.relative_to(ROOT))] = lines
    assert not found


@pytest.mark.parametrize("module", ["tprof", "tprof.events", "tprof.errors", "tprof.samples"])
def test_import_is_light(module: str) -> None:
    heavy = {"numpy", "pandas", "pyarrow", "torch", "triton", "streamlit", "plotly"}
    code = f"import sys, {module}; print(*sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_warnings_are_errors(pytestconfig: pytest.Config) -> None:
    first, *rest = pytestconfig.getini("filterwarnings")
    assert first == "error"
    assert [line for line in rest if "_editable_impl_triton_tprof" not in line] == []
    assert pytestconfig.getini("xfail_strict") is True


def test_every_ruff_ignore_has_a_reason() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    lint = text[text.index("[tool.ruff.lint]") : text.index("[tool.ruff.lint.mccabe]")]
    assert tomllib.loads(text)["tool"]["ruff"]["lint"]["select"] == ["ALL"]
    assert not [line for line in lint.splitlines() if re.match(r'\s+"[A-Z]+\d*",?\s*$', line)]
