"""Runs `docs/notebook.ipynb` and keeps what its cells gave: `make docs`. What changes with every run is left out."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).with_name("notebook.ipynb")


def run() -> str:
    """The notebook, executed."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": "."}}).execute()
    for cell in notebook.cells:
        cell.metadata.clear()
        for output in cell.get("outputs", []):
            if "text/html" in output.get("data", {}):  # it says the same and more
                del output["data"]["text/plain"]
        cell.pop("id", None)
    notebook.nbformat_minor = 4  # the last format whose cells need no random names
    notebook.metadata.language_info = {"name": "python"}
    return nbformat.writes(notebook) + "\n"


if __name__ == "__main__":
    NOTEBOOK.write_text(run())
