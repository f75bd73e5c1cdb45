"""For the site only: brings in the pages that lie outside of `docs/` and the notebook, and mends links to them."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).resolve().parents[1]
ITEM = re.compile(r"(?:-|\d+\.) ")
OUTSIDE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "sample_traces/README.md": "sample-traces.md",
    "README.md": "index.md",
}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside, as pages of `docs/`."""
    for source, page in OUTSIDE.items():
        if page != "index.md":
            text = re.sub(r"\]\(docs/", "](", (ROOT / source).read_text())
            files.append(File.generated(config, page, content=text))
    text = notebook(json.loads((ROOT / "docs" / "notebook.ipynb").read_text()))
    files.append(File.generated(config, "notebook.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Links that lead out of `docs/` lead to the pages that were brought in; a list needs no empty line before it."""
    for source, page in OUTSIDE.items():
        markdown = markdown.replace(f"](../{source}", f"]({page}").replace(f"]({source}", f"]({page}")
    return _spaced(markdown)


def _spaced(markdown: str) -> str:
    found: list[str] = []
    fenced = False
    for line in markdown.splitlines():
        fenced ^= line.lstrip().startswith("```")
        before = found[-1] if found else ""
        if not fenced and ITEM.match(line) and before and not (ITEM.match(before) or before.startswith((" ", "#"))):
            found.append("")
        found.append(line)
    return "\n".join(found)


def notebook(content: dict[str, Any]) -> str:
    """A notebook as a page: its text, its code, and what the code gave."""
    return "\n\n".join(part for cell in content["cells"] for part in _cell(cell))


def _cell(cell: dict[str, Any]) -> list[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [text]
    return [f"```python\n{text}\n```", *(_output(output) for output in cell["outputs"])]


def _output(output: dict[str, Any]) -> str:
    data = output.get("data", {})
    if "text/html" in data:
        lines = "".join(data["text/html"]).splitlines()  # an empty line would end the HTML in Markdown
        return "\n".join(["<div class='output'>", *filter(None, map(str.strip, lines)), "</div>"])
    said = "".join(data.get("text/plain", output.get("text", "")))
    return f"<pre class='output'>{html.escape(said)}</pre>"
