"""The docs as a site: every link leads somewhere, every verb has its page, nothing is loaded from a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from tprof.cli.entry import program

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = {page.stem: page.read_text() for page in DOCS.glob("*.md")}
VERBS = sorted(typer.main.get_command(program).commands)
LOADED = re.compile(
    r"""<(?:script|img|iframe|link[^>]*rel=["']?(?:stylesheet|icon))[^>]*(?:src|href)=["']?(https?:|//)"""
)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The site, built strictly: a broken link or anchor, or a page that the navigation lacks, fails it."""
    pytest.importorskip("material", reason="mkdocs-material is not installed: make docs")
    target = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(target)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


def test_the_site_is_whole(site) -> None:
    built = {page.stem for page in site.glob("*.html")}
    assert {*PAGES, "notebook", "contributing", "changelog", "sample-traces"} <= built
    assert "tprof.load(sample_paths()" in re.sub("<[^>]+>", "", (site / "notebook.html").read_text())


def test_no_page_loads_anything_from_a_network(site) -> None:
    assert [page.name for page in site.glob("*.html") if LOADED.search(page.read_text())] == []


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_a_page_or_a_section(verb) -> None:
    headings = [line for text in PAGES.values() for line in text.splitlines() if line.startswith("#")]
    assert verb in PAGES or any(f"`tprof {verb}`" in line for line in headings)


@pytest.mark.parametrize("verb", VERBS)
def test_the_overview_names_every_verb(verb) -> None:
    assert re.search(rf"\[`{verb}`\]", PAGES["command-line"])


def test_pictures_of_pages_are_there_and_light() -> None:
    named = {name for text in PAGES.values() for name in re.findall(r"\]\((images/[^)]+)\)", text)}
    assert {f"images/{path.name}" for path in (DOCS / "images").iterdir()} == named
    assert [name for name in named if (DOCS / name).stat().st_size > 300_000] == []
