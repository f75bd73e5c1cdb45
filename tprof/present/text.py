"""Results on a terminal: tables that fit its width, and bars."""

from __future__ import annotations

import io
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from tprof.present import colours, columns, names, sentence, units, views, words
from tprof.present.segments import Segment, budget_segments, split, wall_segments

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TextIO

    from tprof.analyze import Result
    from tprof.events import Note

NARROW, WIDE = 80, 200
_FLEXIBLE = 24  # a name shrinks to this before a column is dropped
_BLOCK, _INFERRED, _UNKNOWN = "█", "▓", "░"
_LISTED = 12  # rows of the longer tables, if the user does not say how many
_FINDINGS = 6  # what a page begins with; the rest is in the JSON


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to the caller; Rich would end the program with status 1."""
        raise BrokenPipeError


def console(out: TextIO | None = None, width: int | None = None) -> Console:
    """A console between 80 and 200 columns wide; colour as the terminal and `NO_COLOR` say."""
    made = _Console(
        file=out,
        color_system=None if isinstance(out, io.StringIO) else "auto",
        highlight=False,
        emoji=False,
        markup=False,
    )
    made.width = min(max(width or made.width, NARROW), WIDE)
    return made


def show(result: Result, to: Console, *, every_row: bool = False) -> None:
    """Print a result.

    Args:
        result: what to print.
        to: where.
        every_row: print long tables whole.
    """
    to.print(render(result, to, every_row=every_row))


def plain(result: Result, *, every_row: bool = False, width: int = 120) -> str:
    """A result as text without colours, for a file."""
    out = io.StringIO()
    show(result, console(out, width), every_row=every_row)
    return out.getvalue()


def render(result: Result, to: Console, *, every_row: bool = False) -> RenderableType:
    """A result as one renderable for a console of that width and those colours."""
    if result.title == "summary":
        return _summary(result, to)
    limit = None if every_row else _LISTED
    told = "cold" in result.payload and not result.payload.get("of_kernels")
    head = [Text(sentence.cold_line(result.payload["cold"]))] if told else []
    return Group(*head, *(part for name in result.tables for part in table(result, name, to, limit)))


def table(result: Result, name: str, to: Console, limit: int | None = None) -> list[RenderableType]:
    """Heading, table and caption of one table of a result; nothing where it has no rows."""
    rows, view = result.tables[name], views.view(result, name)
    if not rows:
        return []
    listed = rows if view.whole or limit is None else rows[: min(limit, view.most)]
    told = columns.or_load(result)
    cells = {
        c: [columns.cell(c.key, row.get(c.key), or_load=told) for row in listed]
        for c in columns.shown(view.columns, rows)
    }
    out = _table()
    widths = _fit(cells, to.width)
    for column, width in widths.items():
        out.add_column(column.heading, justify="right" if column.numeric else "left", no_wrap=True, width=width)
    for i, row in enumerate(listed):
        out.add_row(*(_styled(c, cells[c][i], row, w) for c, w in widths.items()))
    parts: list[RenderableType] = [
        Text(f"\n{view.heading}", style="bold"),
        *([Text(view.caption, style="dim")] if view.caption else []),
        out,
    ]
    return parts + _more(len(rows) - len(listed), f": tprof {result.title.split()[0]} --top {len(rows)}")


def _table() -> Table:
    return Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False, header_style="bold")


def _more(hidden: int, what: str) -> list[RenderableType]:
    """What a list leaves out, and where it is to be found."""
    return [Text(f"… and {units.count(hidden)} more{what}", style="dim")] if hidden > 0 else []


def _fit(cells: Mapping[columns.Column, list[str]], width: int) -> dict[columns.Column, int]:
    """Width of each column that fits; names shrink first, then the columns of the highest rank go."""
    natural = {c: max(len(c.heading), *(len(t) for t in texts)) for c, texts in cells.items()}
    least = {c: min(n, _FLEXIBLE) if c.key in columns.FLEXIBLE else n for c, n in natural.items()}
    while sum(least.values()) + 2 * (len(least) - 1) > width and any(c.rank for c in least):
        del least[max(least, key=lambda c: c.rank)]
    spare = width - sum(least.values()) - 2 * (len(least) - 1)
    for column in sorted(least, key=lambda c: c.key in columns.NAME_KEYS):  # words before names, which are cut well
        grown = min(natural[column] - least[column], max(spare, 0))
        least[column], spare = least[column] + grown, spare - grown
    return least


def _styled(column: columns.Column, text: str, row: Mapping[str, Any], width: int) -> Text:
    """A cell: names shortened to the column, phases in their colour, inferred figures marked."""
    if column.key in columns.NAME_KEYS:
        return Text(names.kernel(text, width))
    if column.key in (*columns.PHASE_KEYS, "purpose") and row.get(column.key):
        part = f"busy.{row[column.key]}" if column.key == "purpose" else row[column.key]
        return Text(text, style=colours.of_part(part))
    if column.key in columns.WRAPPED:
        return Text(text, no_wrap=False)
    return Text(names.short(text, width), style="dim" if text in {"inferred", units.UNKNOWN} else "")


# ---- summary


def title(text: str) -> RenderableType:
    """A heading over the whole width."""
    return Padding(Rule(Text(text, style="bold"), align="left", style="dim"), (1, 0, 0, 0))


def _summary(result: Result, to: Console) -> RenderableType:
    return Group(overview(result, to), *_findings(result))


def overview(result: Result, to: Console) -> RenderableType:
    """A summary without its findings: sources, the answer, wall clock, cold start, requests."""
    told = columns.or_load(result)
    largest = sorted(result.sources, key=lambda s: -s["rows_read"])[:3]  # of a run, workers that did nothing come last
    parts: list[RenderableType] = [Text(sentence.source_line(s), style="dim") for s in largest]
    parts += [*_more(len(result.sources) - 3, " sources"), Text(sentence.answer(result))]
    for device in result.payload["devices"]:
        rows = [r for r in result.tables["wall"] if r["device"] == device["device"]]
        parts += [Text(f"\n{sentence.device_line(device)}", style="bold"), *wall(wall_segments(rows, or_load=told), to)]
    parts += [Text("\nCold start", style="bold"), Text(sentence.cold_line(result.payload["cold"]))]
    return Group(*parts, *_requests(result, to))


def wall(segments: Sequence[Segment], to: Console) -> list[RenderableType]:
    """A bar over the whole width and its legend, which sums to 100 %."""
    legend = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1))
    for justify in ("left", "left", "right", "right", "left"):
        legend.add_column(justify=justify)
    large, small = split(segments)
    for s in large:
        mark = Text(_glyph(s, to), style=s.colour)
        legend.add_row(mark, s.label, units.duration(s.ns), units.share(s.share), Text(s.basis, style="dim"))
    if small:
        rest = units.duration(sum(s.ns for s in small)), units.share(sum(s.share for s in small))
        legend.add_row("", f"{len(small)} smaller parts", *rest, "")
    whole = units.duration(sum(s.ns for s in segments))
    legend.add_row("", Text("window", style="bold"), Text(whole, style="bold"), Text("100 %", style="bold"), "")
    return [bar(segments, to.width, to), legend]


def bar(segments: Iterable[Segment], width: int, to: Console) -> Text:
    """Segments side by side; inferred is shaded, unattributed is light; letters where there is no colour."""
    out = Text(no_wrap=True)
    done, at = 0.0, 0
    for segment in segments:
        done += segment.share
        cells = round(done * width) - at
        at += cells
        out.append(_glyph(segment, to) * cells, style=segment.colour)
    return out


def _glyph(segment: Segment, to: Console) -> str:
    if to.no_color or to.color_system is None:
        return words.letter(segment.part)
    return _UNKNOWN if segment.unattributed else _INFERRED if segment.inferred else _BLOCK


def _requests(result: Result, to: Console) -> list[RenderableType]:
    """Requests with a bar of their budget each."""
    rows, told = result.payload["requests"], columns.or_load(result)
    if not rows:
        return []
    out = _table()
    out.add_column("request", no_wrap=True)
    for heading in ("wall", "cold tax", "cold"):
        out.add_column(heading, justify="right", no_wrap=True)
    out.add_column("its wall time by phase", no_wrap=True)
    size = max(to.width - 64, 16)
    for row in rows[:_LISTED]:
        segments = budget_segments(row["phases"], row["wall_ns"], or_load=told)
        drawn = bar(segments, size, to).append(f" {max(segments, key=lambda s: s.ns).label}" if segments else "")
        wall_ns, tax_ns = row["wall_ns"], row["cold_tax_ns"]
        figures = units.duration(wall_ns), units.duration(tax_ns), units.rate(tax_ns, wall_ns)
        out.add_row(names.short(row["name"], 22), *figures, drawn)
    return [Text("\nRequests", style="bold"), out, *_more(len(rows) - _LISTED, ": tprof requests")]


def _findings(result: Result) -> list[RenderableType]:
    """The findings, largest cost first."""
    found = result.payload["findings"][:_FINDINGS]
    parts: list[RenderableType] = [Text("\nWhat to look at first", style="bold")] if found else []
    for number, f in enumerate(found, 1):
        parts.append(Text(f"{number}. {words.sentence(f['title'])}", style="bold"))
        told = Text(sentence.finding_cost(f)).append(f"  {f['basis']}", style="dim")
        told.append(f"  --window {f['window']}" if f["cost_ns"] else "", style="dim")
        said = [Text(words.sentence(f[k])) for k in ("why", "fix") if f[k]]
        parts += [Padding(line, (0, 0, 0, 3)) for line in (told, *said)]
    return parts + _more(len(result.payload["findings"]) - len(found), ": --format json")


def warnings(notes: Sequence[Note], limit: int = 8) -> RenderableType:
    """Warnings, one line each, with the source where the message does not name it; long lists are cut."""
    lines = []
    for note in notes[:limit]:
        where = f"{PurePath(note.source).name}: " if note.source and note.source not in note.message else ""
        lines.append(f"warning: {names.clean(where + note.message)}" + (f" ({note.count:,})" if note.count > 1 else ""))
    lines += [f"… and {len(notes) - limit} more warnings: --format json"] if len(notes) > limit else []
    return Text("\n".join(lines), style="yellow")
