"""What `make docs` writes is what it would write now: the pictures, and what the notebook's cells give."""

from __future__ import annotations

import contextlib
import io
import json
import re
import runpy
from pathlib import Path

import pytest
from support.doc_pages import blocks

from tprof import events
from tprof.prepare import bundle, plan_file
from tprof.read import run
from tprof.record import rundir

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def test_references_of_columns_are_up_to_date() -> None:
    pages = runpy.run_path(str(DOCS / "make_columns.py"))["PAGES"]
    assert [name for name, made in pages.items() if (DOCS / name).read_text() != made()] == [], "run `make docs`"


def test_every_figure_of_an_answer_has_a_unit_and_every_share_its_whole() -> None:
    cells = [line.split(" | ") for line in (DOCS / "result-columns.md").read_text().splitlines() if " | " in line]
    rows = [(key.removeprefix("| "), unit, whole.removesuffix(" |")) for key, _, unit, whole in cells]
    assert [key for key, unit, _ in rows if key.endswith(("_ns", "_bytes", "share")) and not unit] == []
    assert [key for key, _, whole in rows if key.endswith("share") and whole in {"", "see above"}] == []


def test_pictures_are_up_to_date() -> None:
    drawn = runpy.run_path(str(DOCS / "make_pictures.py"))["pictures"]()
    assert [name for name, content in drawn.items() if (DOCS / "images" / name).read_text() != content] == []


def test_the_picture_of_the_architecture_is_that_of_the_code() -> None:
    drawn = runpy.run_path(str(DOCS / "make_architecture.py"))["render"]()
    assert (DOCS / "images" / "architecture.svg").read_text() == drawn, "run `make docs`"


def test_the_worked_example_is_the_one_that_is_drawn() -> None:
    drawn = runpy.run_path(str(DOCS / "make_pictures.py"))
    (block,) = [b for b in blocks((DOCS / "attribution.md").read_text()) if b.file == "tiny.json"]
    rows = json.loads(block.text)["traceEvents"]
    for kind, cats in (("OPERATORS", {"cpu_op"}), ("CALLS", {"cuda_runtime"}), ("KERNELS", {"kernel"})):
        said = [(row["ts"], row["ts"] + row["dur"]) for row in rows if row["cat"] in cats]
        assert said == [(start, end) for _, start, end in drawn[kind]]


def test_versions_of_formats_are_those_of_the_code() -> None:
    said = re.findall(r"^\| ([^|]+) \| (\d+) \|", (DOCS / "architecture.md").read_text(), re.MULTILINE)
    versions = (events.SCHEMA_VERSION, rundir.FORMAT_VERSION, 1, plan_file.FORMAT_VERSION, bundle.FORMAT_VERSION)
    assert [int(version) for _, version in said] == list(versions)
    assert run.FORMAT_VERSION == rundir.FORMAT_VERSION  # what is written is what is read


def _cells() -> list[dict[str, object]]:
    cells = json.loads((DOCS / "notebook.ipynb").read_text())["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def test_cells_of_the_notebook_give_what_is_kept() -> None:
    names: dict[str, object] = {}
    for cell in _cells():
        *lines, last = "".join(cell["source"]).splitlines()
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            if last.startswith(" "):  # the body of a loop
                exec("\n".join([*lines, last]), names)
                value = None
            else:
                exec("\n".join(lines), names)
                value = eval(last, names)
        kept = cell["outputs"][0]
        data = kept.get("data", {"text/plain": kept.get("text")})
        shown = value._repr_html_() if "text/html" in data else out.getvalue() or repr(value)
        assert shown == "".join(data.get("text/html") or data["text/plain"]), "run `make docs`"


@pytest.mark.parametrize("method", ["summary", "idle", "cold", "autotune", "kernels", "shapes", "requests", "advise"])
def test_every_answer_shows_itself_with_units(method, sample_traces) -> None:
    import tprof

    answer = getattr(tprof.load(sample_traces / "h200-torch.json.gz"), method)()
    shown = answer._repr_html_()
    assert "<table" in shown
    assert "_ns" not in shown
    assert "<script" not in shown
