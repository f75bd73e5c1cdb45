"""What can be opened: sources of the command line, samples, what lies below the served folder, uploads."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Final
from weakref import finalize

import streamlit as st

from tprof.errors import TprofError
from tprof.read import expand
from tprof.samples import sample_paths
from tprof_app.served import bounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from tprof_app.served import Served

FOLDER: Final = "folder: "  # before a path below the served folder
UPLOAD: Final = "upload: "


@dataclass(frozen=True)
class Choice:
    """Something to open: what it is called, in the address too, and the paths that are read together."""

    label: str
    paths: tuple[str, ...]


class Uploads:
    """A folder that is removed together with the session that it belongs to."""

    def __init__(self) -> None:
        self.folder = Path(mkdtemp(prefix="tprof-"))
        self.choices: dict[str, Choice] = {}
        finalize(self, rmtree, self.folder, ignore_errors=True)


def samples() -> list[Choice]:
    """The bundled recordings.

    Raises:
        TprofError: there are none.
    """
    return [Choice(f"sample: {name}", (str(path),)) for name, path in sample_paths().items()]


def given(sources: Sequence[str]) -> list[Choice]:
    """The sources of the command line: all as one recording, then each alone."""
    files = [str(path) for path in expand(sources)]
    names = [Path(path).name for path in files]
    each = [Choice(name if names.count(name) == 1 else path, (path,)) for name, path in zip(names, files, strict=True)]
    return each if len(files) == 1 else [Choice(f"all {len(files)} files as one recording", tuple(sources)), *each]


def offered(served: Served) -> list[Choice]:
    """What a click picks: the sources of the command line, else the samples; then this session's uploads."""
    return [*(given(served.given) if served.given else samples()), *_uploads().choices.values()]


def chosen(label: str, served: Served) -> Choice:
    """What a label of the address means.

    Raises:
        TprofError: nothing that this server offers, or an upload of another session.
    """
    if label.startswith(FOLDER):
        return Choice(label, (str(served.checked(served.below(label.removeprefix(FOLDER)))),))
    if found := next((choice for choice in offered(served) if choice.label == label), None):
        return found
    if label.startswith(UPLOAD):
        raise TprofError(f"{label}: uploads are kept for the session that made them; upload the file again")
    raise TprofError(f"{label}: this server does not offer it; open another recording")


def uploaded(files: Sequence[UploadedFile], served: Served) -> Choice:
    """Uploads as one choice: written once to a folder that lives as long as the session.

    Raises:
        TprofError: one is too large when inflated, or may not be read.
    """
    paths = [_kept(_uploads().folder, file) for file in files]
    for path in paths:
        bounded(served.checked(path))
    choice = Choice(UPLOAD + ", ".join(path.name for path in paths), tuple(map(str, paths)))
    _uploads().choices[choice.label] = choice
    return choice


def without_folder(text: str, served: Served) -> str:
    """Text without the folders of uploads and of the server, which are not a user's to know."""
    shown = re.sub(rf"{re.escape(str(_uploads().folder))}/[^/]+/", "", text)
    return shown.replace(f"{served.root}/", "") if served.root else shown


def _uploads() -> Uploads:
    found: Uploads = st.session_state.setdefault("uploads", None) or Uploads()
    st.session_state["uploads"] = found
    return found


def _kept(folder: Path, file: UploadedFile) -> Path:
    path = folder / file.file_id / (Path(file.name).name or "upload")
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(file.getbuffer())
    return path
