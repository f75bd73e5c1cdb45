"""A tprof run directory: journals line by line, launches as they are, other profilers' traces by their own formats."""

from __future__ import annotations

import gzip
import shutil
from typing import TYPE_CHECKING, Any, Final

import msgspec

from tprof.read.run import companions
from tprof.read.run_journal import contents, journal_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tprof.scrub.words import Words

_AS_IS: Final = ("process-*.launches", "process-*.launches.gz", "started")  # numbers only
_ENVIRONMENT: Final = frozenset({"environment", "env"})


def scrub_run(path: Path, out: Path, words: Words, scrub: Callable[[Path, Path, Words], None]) -> list[str]:
    """Write the copy, with `scrub` those of other profilers' traces; returns the files that were left out."""
    out.mkdir(mode=0o700)
    journals = [*path.glob("run.json"), *journal_files(path)]
    for file in journals:
        for line in _lines(file):
            _learn(line, words)
    for file in journals:
        text = b"\n".join(_scrubbed(line, words) for line in _lines(file))
        (out / file.name).write_bytes(gzip.compress(text) if file.suffix == ".gz" else text)
    for pattern in _AS_IS:
        for file in path.glob(pattern):
            shutil.copyfile(file, out / file.name)
    for file in companions(path):
        scrub(file, out / file.name, words)
    return sorted(f.name for f in path.iterdir() if not (out / f.name).exists())


def _lines(file: Path) -> list[bytes]:
    return contents(file).split(b"\n") if ".jsonl" in file.name else [file.read_bytes()]


def _learn(line: bytes, words: Words) -> None:
    words.learn(line)
    if b'"host"' in line and isinstance(host := _decoded(line).get("host"), str):
        words.host(host)


def _scrubbed(line: bytes, words: Words) -> bytes:
    """One line; what names the machine by itself is replaced by its field, the rest by its text."""
    if b'"host"' in line or any(f'"{word}"'.encode() in line for word in _ENVIRONMENT):
        said = _decoded(line)
        if isinstance(said.get("host"), str):
            said["host"] = words.host(said["host"])
        line = msgspec.json.encode(_without_environment(said)) if said else b""
    return words.data(line)


def _without_environment(value: Any) -> Any:
    """The same without what environment variables held."""
    if isinstance(value, dict):
        return {k: {} if k in _ENVIRONMENT else _without_environment(v) for k, v in value.items()}
    return [_without_environment(v) for v in value] if isinstance(value, list) else value


def _decoded(line: bytes) -> dict[str, Any]:
    """The object of a line; nothing where the line was cut."""
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
