"""Every command and snippet of the docs is run, on the sample traces and the stub driver, or says why it is not."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.doc_pages import RUN, SHOWN, blocks
from support.doc_play import SKIP

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
SAMPLES = {  # what the examples call it -> what it is
    "run": "cold-torch",
    "before": "cold-torch",
    "after": "warm-torch",
    "rank-run": "ranks",
    "trace.json.gz": "h200-torch.json.gz",
    "sample_traces": ".",
}
HAVING = [page for page in PAGES if any(b.language in RUN and not b.reason for b in blocks(page.read_text()))]

each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    """An Nsight export as `nsys` writes it: not gzipped."""
    path = tmp_path_factory.mktemp("nsight") / "report.sqlite"
    with gzip.open(ROOT / "sample_traces" / "h200-nsight.sqlite.gz") as packed, path.open("wb") as plain:
        shutil.copyfileobj(packed, plain)
    return path


@pytest.fixture
def folder(tmp_path, report) -> Path:
    """Where a page runs: the recordings that its examples name, and the service of the tutorial."""
    for name, sample in SAMPLES.items():
        (tmp_path / name).symlink_to(ROOT / "sample_traces" / sample)
    for name in ("examples", "docs", "benchmarks"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "report.sqlite").symlink_to(report)
    for page in ("tutorial", "triton"):
        for block in blocks((ROOT / "docs" / f"{page}.md").read_text()):
            if block.file:
                (tmp_path / block.file).write_text(block.text)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    """Caches of its own, and this very tprof."""
    paths = [str(ROOT / part) for part in ("", "apps", "kernels", "tests")]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TPROF_", "TRITON_", "PYTEST_"))}
    return kept | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])]),
        "COLUMNS": "100",
        "NO_COLOR": "1",
        "OMP_NUM_THREADS": "1",
        "HOME": str(folder),
        "TPROF_CACHE": "0",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"),
        "TRITON_CACHE_DIR": str(folder / "triton"),
        "TRITON_DEFAULT_FP_FUSION": "1",
    }


@pytest.mark.parametrize("page", HAVING, ids=lambda page: page.stem)
def test_what_a_page_says_runs(page, folder) -> None:
    play = ROOT / "tests" / "support" / "doc_play.py"
    done = subprocess.run(
        [sys.executable, str(play), str(page)],
        cwd=folder,
        env=environment(folder),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode == SKIP:
        pytest.skip(done.stderr)
    if done.returncode:
        pytest.fail(done.stdout + done.stderr, pytrace=False)


@each_page
def test_every_block_says_what_it_is(page) -> None:
    assert {block.language for block in blocks(page.read_text())} <= {*RUN, *SHOWN}


@each_page
def test_every_command_begins_with_a_prompt(page) -> None:
    consoles = [block for block in blocks(page.read_text()) if block.language == "console"]
    assert [block.line for block in consoles if not block.text.startswith("$ ")] == []
