"""A self-contained HTML report: no script, nothing loaded; the template lays out what is prepared here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from tprof.events import COLD_PHASES, DEVICE_IDLE_PHASES, PURPOSES, WARM_PHASES
from tprof.present import cards, colours, columns, names, sentence, units, views, words
from tprof.present.segments import Segment, budget_segments, split, wall_segments

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from jinja2 import Template

    from tprof.analyze import Result

_NAME = 56  # characters of a name before it is folded
_ROWS = 40  # of a long table
_DETAIL = 3  # columns of a higher rank are left to the command line


@dataclass(frozen=True)
class Chapter:
    """What a report says of one trace: the results of the same window."""

    title: str
    summary: Result
    idle: Result
    cold: Result
    kernels: Result


@dataclass(frozen=True)
class Cell:
    """One cell as the template shows it.

    Attributes:
        text: what is read.
        numeric: aligns to the right.
        full: the whole name, where `text` is a shortened one.
        colour: of a swatch before the text.
        hatched: the swatch is that of something inferred.
        dim: less important.
    """

    text: str
    numeric: bool = False
    full: str = ""
    colour: str = ""
    hatched: bool = False
    dim: bool = False


@dataclass(frozen=True)
class Grid:
    """One table as the template shows it."""

    heading: str
    caption: str
    columns: list[columns.Column]
    rows: list[list[Cell]]
    more: int = 0


def report(chapters: Sequence[Chapter], version: str) -> str:
    """The page.

    Args:
        chapters: one per trace.
        version: of tprof, for the foot of the page.
    """
    shown = [_chapter(chapter, number) for number, chapter in enumerate(chapters, 1)]
    return _template("report.html.j2").render(chapters=shown, version=version, legend=_words(), units=units)


def fragment(result: Result) -> str:
    """A result within a notebook: its sources, every table that is not made to be drawn, and its warnings."""
    grids = _grids(result, (name for name in result.tables if name != "waterfall"))
    lines = [sentence.source_line(source) for source in result.sources]
    notes = [f"{note.code}: {names.clean(note.message)}" for note in result.notes]
    return _template("result.html.j2").render(lines=lines, grids=grids, notes=notes, units=units)


@cache
def _template(name: str) -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # noqa: PLC0415  only a report needs it

    loader = PackageLoader("tprof", "present")
    made = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return made.get_template(name)


def _chapter(chapter: Chapter, number: int) -> dict[str, Any]:
    summary = chapter.summary
    told = columns.or_load(summary)
    return {
        "id": f"c{number}",
        "title": names.clean(chapter.title),
        "sources": [(sentence.source_line(s), names.clean(s["path"])) for s in summary.sources],
        "answer": sentence.answer(summary),
        "window": units.duration(summary.payload["window"]["wall_ns"]),
        "cards": cards.cards(summary),
        "walls": [_wall(row, summary.tables["wall"], or_load=told) for row in summary.payload["devices"]],
        "requests": [_request(row, or_load=told) for row in summary.payload["requests"]],
        "cold_line": sentence.cold_line(summary.payload["cold"]),
        "cold": _grids(chapter.cold, (name for name in chapter.cold.tables if name != "waterfall")),  # made to be drawn
        "idle": _grids(chapter.idle, ("phases", "gaps")),
        "kernels": _grids(chapter.kernels, ("kernels",)),
        "findings": [_finding(f) for f in summary.payload["findings"]],
        "notes": [
            (note.code, names.clean(note.message), units.count(note.count), names.clean(note.source))
            for note in summary.notes
        ],
    }


def _wall(device: dict[str, Any], rows: Iterable[dict[str, Any]], *, or_load: bool) -> dict[str, Any]:
    """The bar of one device and its legend."""
    segments = wall_segments([r for r in rows if r["device"] == device["device"]], or_load=or_load)
    large, small = split(segments)
    said = {"line": sentence.device_line(device), "spoken": _spoken(segments)}
    return {**said, "segments": segments, "large": large, "small": small}


def _request(row: dict[str, Any], *, or_load: bool) -> dict[str, Any]:
    segments = budget_segments(row["phases"], row["wall_ns"], or_load=or_load)
    return {
        **row,
        "name": names.short(row["name"], _NAME),
        "segments": segments,
        "spoken": _spoken(segments),
        "largest": [s for s in segments if s.share >= 0.05][:4],
    }


def _spoken(segments: Sequence[Segment]) -> str:
    """A bar for those who cannot see it."""
    return ", ".join(f"{s.label} {units.share(s.share)}" for s in split(segments)[0])


def _finding(finding: dict[str, Any]) -> dict[str, Any]:
    said = {k: words.sentence(finding[k]) if finding[k] else "" for k in ("title", "why", "fix")}
    kernel = names.kernel(finding["kernel"], _NAME) if finding["kernel"] else ""
    cost = {"cost": sentence.finding_cost(finding), "at": finding["window"]}
    return {**said, **cost, "kernel": kernel, "basis": finding["basis"]}


def _grids(result: Result, tables: Iterable[str]) -> list[Grid]:
    return [_grid(result, name) for name in tables if result.tables[name]]


def _grid(result: Result, name: str) -> Grid:
    view, rows, told = views.view(result, name), result.tables[name], columns.or_load(result)
    kept = [c for c in columns.shown(view.columns, rows) if c.rank <= _DETAIL]
    cells = [[_cell(c, row, or_load=told) for c in kept] for row in rows[:_ROWS]]
    return Grid(view.heading, view.caption, kept, cells, max(len(rows) - _ROWS, 0))


def _cell(column: columns.Column, row: dict[str, Any], *, or_load: bool) -> Cell:
    value = row.get(column.key)
    text = columns.cell(column.key, value, or_load=or_load)
    if value is not None and column.key in columns.NAME_KEYS:
        brief = names.kernel(value, _NAME)
        return Cell(brief, full=text if brief != text else "")
    if value is not None and column.key in (*columns.PHASE_KEYS, "purpose"):
        part = f"busy.{value}" if column.key == "purpose" else value
        hatched = row.get("basis") == "inferred" or value == "unattributed"
        return Cell(text, colour=colours.of_part(part), hatched=hatched)
    return Cell(text, numeric=column.numeric, dim=text in {units.UNKNOWN, "0 s", "0"})


def _words() -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Every phase and purpose with its colour and meaning, by group."""
    groups = (
        ("Cold start", COLD_PHASES, ""),
        ("Warm", WARM_PHASES, ""),
        ("Between device events", DEVICE_IDLE_PHASES, ""),
        ("Device work, by why it ran", PURPOSES, "busy."),
    )
    return [
        (name, [(words.label(w), colours.of_part(prefix + w), words.meaning(w)) for w in group])
        for name, group, prefix in groups
    ]
