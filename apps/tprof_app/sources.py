"""What can be opened: sources of the command line, samples, what lies below the served folder, uploads."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Final
from weakref import finalize

import streamlit as st

from tprof.batch import is_batch
from tprof.errors import TprofError
from tprof.read import expand
from tprof.samples import sample_paths
from tprof_app import batches
from tprof_app.served import bounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from tprof_app.served import Served

FOLDER: Final = "folder: "  # before a path below the served folder
UPLOAD: Final = "upload: "


@dataclass(frozen=True)
class Choice:
    """Something to open: what it is called, in the address too, and the paths that are read together."""

    label: str
    paths: tuple[str, ...]

    @property
    def batch(self) -> bool:
        """Whether it is what `tprof batch` made of many recordings."""
        return len(self.paths) == 1 and is_batch(self.paths[0])


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
    """The sources of the command line: batches, all recordings as one, each alone, and those of the batches."""
    folders = [source for source in sources if is_batch(source)]
    single = [source for source in sources if source not in folders]
    files = [str(path) for path in expand(single)]
    whole = [Choice(f"all {len(files)} files as one recording", tuple(single))] if len(files) > 1 else []
    below = [path for folder in folders for path in batches.recordings(folder)]
    return [*_named("batch: ", folders), *whole, *_named("", dict.fromkeys([*files, *below]))]


def _named(what: str, paths: Iterable[str]) -> list[Choice]:
    """Each by its name, or by its path where another has that name too."""
    names = {path: Path(path).name for path in paths}
    often = Counter(names.values())
    return [Choice(what + (name if often[name] == 1 else path), (path,)) for path, name in names.items()]


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


def label_of(path: str, served: Served) -> str | None:
    """How a recording that a batch names is opened; None where it is gone, or not among what this server offers."""
    if found := next((choice.label for choice in offered(served) if choice.paths == (path,)), None):
        return found
    below = served.root is not None and Path(path).exists() and Path(path).is_relative_to(served.root)
    return f"{FOLDER}{Path(path).relative_to(served.root)}" if below and served.root else None


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
