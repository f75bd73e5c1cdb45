"""Sources of the page: from the command line, the samples, or an upload; read once, shared by all sessions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from threading import Lock
from typing import TYPE_CHECKING
from weakref import finalize

import streamlit as st

import tprof
from tprof.read import expand
from tprof.samples import sample_paths
from tprof_app.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamlit.runtime.uploaded_file_manager import UploadedFile

Key = tuple[tuple[str, int, int], ...]
_KEPT = 4  # recordings in memory


@dataclass(frozen=True)
class Choice:
    """An entry of the picker: what it is called, and the paths that are read together."""

    label: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Opened:
    """A recording's answers."""

    summary: tprof.Result
    idle: tprof.Result


@dataclass
class Slot:
    """A place for one recording. The first session reads it, with its own progress; others wait and share."""

    paths: tuple[str, ...]
    lock: Lock = field(default_factory=Lock)
    opened: Opened | None = None

    def open(self, progress: Callable[[int, int], None]) -> Opened:
        """Answers, computed once."""
        with self.lock:
            if self.opened is None:
                trace = tprof.load(*self.paths, progress=progress)
                self.opened = Opened(trace.summary(), trace.idle())
            return self.opened


class Uploads:
    """A folder that is removed together with the session that it belongs to."""

    def __init__(self) -> None:
        self.folder = Path(mkdtemp(prefix="tprof-"))
        finalize(self, rmtree, self.folder, ignore_errors=True)


def choices(given: Sequence[str]) -> list[Choice]:
    """Everything that can be picked, default first.

    Args:
        given: sources of the command line; if there are none, the samples.

    Raises:
        TprofError: a source does not exist, or there is no sample.
    """
    if not given:
        return [Choice(f"sample: {name}", (str(path),)) for name, path in sample_paths().items()]
    files = [str(path) for path in expand(given)]
    names = [Path(path).name for path in files]
    each = [Choice(name if names.count(name) == 1 else path, (path,)) for name, path in zip(names, files, strict=True)]
    return each if len(files) == 1 else [Choice(f"all {len(files)} files as one recording", tuple(given)), *each]


def uploaded(files: Sequence[UploadedFile]) -> Choice:
    """Uploads as a choice: written once to a folder that lives as long as the session."""
    if "uploads" not in st.session_state:
        st.session_state["uploads"] = Uploads()
    paths = [_kept(st.session_state["uploads"].folder, file) for file in files]
    return Choice(f"upload: {', '.join(path.name for path in paths)}", tuple(map(str, paths)))


def without_folder(text: str) -> str:
    """Text without the folder of this session's uploads, which means nothing to a user."""
    uploads = st.session_state.get("uploads")
    return re.sub(rf"{re.escape(str(uploads.folder))}/[^/]+/", "", text) if uploads else text


def _kept(folder: Path, file: UploadedFile) -> Path:
    path = folder / file.file_id / (Path(file.name).name or "upload")
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(file.getbuffer())
    return path


def opened(choice: Choice) -> Opened:
    """Answers for a choice, with a progress bar while it is read for the first time.

    Raises:
        TprofError: it cannot be read.
    """
    slot = _slot(_key(choice.paths))
    if slot.opened:
        return slot.opened
    place = st.empty()
    with place, st.status(f"Reading {plain(choice.label)}", expanded=True):
        bar = st.progress(0.0)

        def progress(done: int, total: int) -> None:
            bar.progress(min(done / max(total, 1), 1.0))

        answers = slot.open(progress)
    place.empty()
    return answers


@st.cache_resource(max_entries=_KEPT, show_spinner=False)
def _slot(key: Key) -> Slot:
    """The place of a recording: another one as soon as a file changes."""
    return Slot(tuple(path for path, _, _ in key))


def _key(paths: Sequence[str]) -> Key:
    """Path, time of change and size of every file; of one that does not exist, reading says so."""
    return tuple((str(path), *_stamp(path)) for path in expand(paths))


def _stamp(path: Path) -> tuple[int, int]:
    if not path.exists():
        return 0, 0
    known = path.stat()
    return known.st_mtime_ns, known.st_size
