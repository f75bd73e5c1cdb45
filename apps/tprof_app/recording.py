"""An opened recording: read once, shared by all sessions, its answers kept."""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Final

import streamlit as st

import tprof
from tprof.analyze import Options
from tprof.analyze.cold import compile_includes
from tprof.analyze.lanes import Lane, lanes
from tprof.read import expand
from tprof_app.text import plain

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tprof.facade import Trace

Key = tuple[tuple[str, int, int], ...]
_RECORDINGS: Final = 4  # in memory; what they read is mapped from the cache of traces, so most of it can be dropped
_ANSWERS: Final = 32  # of each


@dataclass(eq=False)
class Recording:
    """A trace and what was asked of it.

    Attributes:
        paths: what was read, as the server sees it.
    """

    paths: tuple[str, ...]
    lock: RLock = field(default_factory=RLock)
    _trace: Trace | None = None
    _answers: OrderedDict[tuple[str, str], tprof.Result] = field(default_factory=OrderedDict)

    @property
    def ready(self) -> bool:
        """Whether it has been read."""
        return self._trace is not None

    def open(self, progress: Callable[[int, int], None] | None = None) -> Recording:
        """Read it, once: the first session with its own progress, others wait and share.

        Raises:
            TprofError: it cannot be read.
        """
        with self.lock:
            if self._trace is None:
                self._trace = tprof.load(*self.paths, progress=progress)
            return self

    @property
    def trace(self) -> Trace:
        """The trace, opened."""
        self.open()
        assert self._trace is not None  # noqa: S101  `open` has set it
        return self._trace

    @cached_property
    def extent(self) -> tuple[int, int]:
        """First and last instant, ns."""
        return self.trace.attribution.extent

    @cached_property
    def or_load(self) -> bool:
        """Whether compiling cannot be told from loading in it."""
        return bool(compile_includes(self.trace, self.extent))

    @cached_property
    def lanes(self) -> list[Lane]:
        """Lanes of the timeline with their level of detail, made once."""
        with self.lock:
            found = lanes(self.trace.attribution)
            for lane in found:
                _ = lane.blocks
            return found

    def ask(self, verb: str, options: Options | None = None) -> tprof.Result:
        """A method of the trace by its name (`summary`, `idle`, `cold` …); the same question is answered once."""
        options = options or Options()
        key = verb, repr(options)  # buckets have no hash
        with self.lock:
            if key not in self._answers:
                with st.spinner(f"Working out: {verb}", show_time=True):
                    self._answers[key] = getattr(self.trace, verb)(options)
            self._answers.move_to_end(key)
            while len(self._answers) > _ANSWERS:
                self._answers.popitem(last=False)
            return self._answers[key]


def opened(paths: Sequence[str], label: str) -> Recording:
    """A recording, with a progress bar and its rate while it is read for the first time.

    Raises:
        TprofError: it cannot be read.
    """
    files = expand(paths)
    recording = _slot(tuple((str(path), *_stamp(path)) for path in files))
    if recording.ready:
        return recording
    place = st.empty()
    with place, st.status(f"Reading {plain(label)}", expanded=True):
        bar, began = st.progress(0.0), time.monotonic()
        sizes = {path.stat().st_size for path in files if path.is_file()}

        def progress(done: int, total: int) -> None:
            rate = done / max(time.monotonic() - began, 1e-3) / 1e6
            unit = "MB/s" if total in sizes else "million rows/s"
            bar.progress(min(done / max(total, 1), 1.0), text=f"{rate:,.1f} {unit}")

        recording.open(progress)
    place.empty()
    return recording


@st.cache_resource(max_entries=_RECORDINGS, show_spinner=False)
def _slot(key: Key) -> Recording:
    """The place of a recording: another one as soon as a file changes."""
    return Recording(tuple(path for path, _, _ in key))


def _stamp(path: Path) -> tuple[int, int]:
    """Time of change and size; of a file that does not exist, reading says so."""
    if not path.exists():
        return 0, 0
    known = path.stat()
    return known.st_mtime_ns, known.st_size
