"""Copies of recordings without what names a person, a machine or a place: one module per format that can be written.

A copy keeps what tprof reads, so its analysis is the same. Tables and fields are kept by allow-list; in the texts that
are kept, folders, hosts, users and addresses are replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tprof.errors import SourceError
from tprof.read.detect import detect
from tprof.read.run_journal import is_run
from tprof.scrub.run import scrub_run
from tprof.scrub.sqlite import scrub_sqlite
from tprof.scrub.torch import scrub_torch

if TYPE_CHECKING:
    from pathlib import Path

    from tprof.scrub.words import Words

__all__ = ["scrub"]


def scrub(path: Path, out: Path, words: Words) -> list[str]:
    """Write a scrubbed copy of one source.

    Args:
        path: a run directory, a torch.profiler trace or an Nsight Systems SQLite export; gzip stays gzip.
        out: the copy, which must not exist; a folder for a run directory.
        words: replacements, shared by the copies that belong together.

    Returns:
        Files of a run directory that were left out, since they cannot be rewritten.

    Raises:
        SourceError: the source cannot be read, or its format cannot be written.
    """
    if is_run(path):
        return scrub_run(path, out, words, _scrub_trace)
    _scrub_trace(path, out, words)
    return []


def _scrub_trace(path: Path, out: Path, words: Words) -> None:
    write = {"torch": scrub_torch, "nsight": scrub_sqlite}.get(detect(path))
    if write is None:  # a report, or an export as Arrow or Parquet
        raise SourceError(path, "cannot be written in this form; export the report (nsys export -t sqlite), scrub that")
    write(path, out, words)
