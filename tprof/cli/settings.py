"""Settings: an argument wins over `TPROF_*`, that over `[tool.tprof]` of the nearest pyproject.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tprof.buckets import BucketSet, bucket_sets
from tprof.errors import UsageError
from tprof.events import PHASES, PURPOSES

if TYPE_CHECKING:
    from collections.abc import Iterable

_KEYS: Final = {"format": str, "top": int, "ranges": list, "phases": dict, "buckets": dict, "check": dict}


@dataclass(frozen=True)
class Settings:
    """What `[tool.tprof]` may hold.

    Attributes:
        format: as `--format`.
        top: as `--top`.
        ranges: as `--range`.
        phases: glob over range names -> phase or purpose, as `--phase`.
        buckets: named groups of shapes.
        check: gates of `tprof check`, by the name of their option.
    """

    format: str | None = None
    top: int | None = None
    ranges: tuple[str, ...] = ()
    phases: dict[str, str] = field(default_factory=dict)
    buckets: tuple[BucketSet, ...] = ()
    check: dict[str, Any] = field(default_factory=dict)


def load_settings(start: Path) -> Settings:
    """Settings of the nearest pyproject.toml at or above a folder; none where there is no such file.

    Raises:
        UsageError: the file is no TOML, or `[tool.tprof]` holds something that tprof does not know.
    """
    for folder in (start, *start.parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            return _checked(path, _section(path))
    return Settings()


def _section(path: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid TOML ({error}); correct it, or run tprof elsewhere") from error
    section = found.get("tool", {}).get("tprof", {})
    if not isinstance(section, dict):
        raise UsageError(f"{path}: [tool.tprof] must be a table")
    return section


def _checked(path: Path, section: dict[str, Any]) -> Settings:
    for key, value in section.items():
        if key not in _KEYS:
            raise UsageError(f"{path}: [tool.tprof] has no setting {key!r}{_hint(key, _KEYS)}")
        if not isinstance(value, _KEYS[key]):
            raise UsageError(f"{path}: tool.tprof.{key} must be a {_KEYS[key].__name__}, not {value!r}")
    phases = {glob: check_phase(str(phase)) for glob, phase in section.get("phases", {}).items()}
    ranges = tuple(str(r) for r in section.get("ranges", ()))
    buckets = bucket_sets(section.get("buckets", {}))
    return Settings(section.get("format"), section.get("top"), ranges, phases, buckets, section.get("check", {}))


def parse_phases(given: Iterable[str]) -> dict[str, str]:
    """`GLOB=PHASE` as typed -> {glob: phase}; the last `=` separates, since a name may hold one.

    Raises:
        UsageError: no `=`, or no such phase or purpose.
    """
    found = {}
    for text in given:
        glob, equals, phase = text.rpartition("=")
        if not equals or not glob:
            raise UsageError(f"--phase {text!r}: write GLOB=PHASE, for example 'tune*=autotune'")
        found[glob] = check_phase(phase)
    return found


def check_phase(word: str) -> str:
    """The word itself, if it is a phase or a purpose.

    Raises:
        UsageError: it is neither; the message names the nearest.
    """
    known = tuple(dict.fromkeys((*PHASES, *PURPOSES)))
    if word not in known:
        raise UsageError(f"{word!r} is no phase or purpose{_hint(word, known)}")
    return word


def _hint(word: str, known: Iterable[str]) -> str:
    near = get_close_matches(word, list(known), 1)
    return f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(known)}"
