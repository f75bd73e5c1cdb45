"""Draws the pictures of the docs, `docs/images/*.svg`, from the sample recordings and the worked example."""

from __future__ import annotations

import html
import itertools
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tprof
from tprof.present import colours, units, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DOCS = Path(__file__).resolve().parent
SAMPLE = DOCS.parent / "sample_traces" / "cold-torch"
WIDTH, LEFT, ROW = 860, 190, 26  # of a picture; where its bars begin; from one row to the next
INK, PALE = "#24292f", "#d8dee4"


def text(x: float, y: float, said: str, anchor: str = "start", size: int = 13) -> str:
    """A line of text."""
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" fill="{INK}"'
    return f"<text {place}>{html.escape(said)}</text>"


def bar(x: float, y: float, width: float, colour: str, said: str = "", height: int = 18) -> str:
    """A rectangle; what it is shows under the pointer."""
    title = f"<title>{html.escape(said)}</title>" if said else ""
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" fill="{colour}">{title}</rect>'


def tick(x: float, top: float, bottom: float) -> str:
    """A thin vertical line."""
    return f'<line x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}" stroke="{PALE}"/>'


def legend(y: float, parts: Iterable[str]) -> list[str]:
    """A swatch and a name for each phase."""
    drawn, x = [], 0.0
    for part in parts:
        label = words.label(part)
        drawn += [bar(x, y, 12, colours.of_part(part), height=12), text(x + 17, y + 11, label, size=12)]
        x += 30 + 7 * len(label)
    return drawn


def picture(name: str, height: float, parts: Sequence[str], said: str) -> tuple[str, str]:
    """An SVG file: its name and its content; `said` is for those who cannot see it."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 -8 {WIDTH + 16} {height + 16:.0f}" role="img" '
        f'font-family="sans-serif"><title>{html.escape(said)}</title>'
    )
    return name, "\n".join([head, *parts, "</svg>\n"])


def tiles() -> tuple[str, str]:
    """A vector of 777 elements and the seven programs that share it."""
    n, block, scale = 777, 128, 840 / 896
    parts = [bar(0, 30, n * scale, "#9ec5f0"), text(0, 22, "x: 777 elements")]
    for program in range(7):
        x = program * block * scale
        inside = min(block, n - program * block)
        parts += [
            bar(x + 1, 66, inside * scale - 2, "#37a03c", f"program {program}", 30),
            bar(x + 1 + inside * scale, 66, max(0, (block - inside) * scale - 2), PALE, "masked off", 30),
            text(x + block * scale / 2, 86, f"program {program}", "middle", 12),
            tick(x, 48, 66),
        ]
    parts.append(text(840, 114, "masked off: no element", "end", 12))
    return picture("tiles.svg", 120, parts, "777 elements in tiles of 128: seven programs, the last one mostly masked")


def budgets(trace: tprof.Trace) -> tuple[str, str]:
    """The wall time of each request by phase."""
    rows = trace.requests().payload["requests"]
    longest, seen, parts = max(row["wall_ns"] for row in rows), {}, []
    for i, row in enumerate(rows):
        x, y = float(LEFT), i * ROW
        parts += [text(0, y + 14, row["name"]), text(LEFT - 8, y + 14, units.duration(row["wall_ns"]), "end")]
        for phase, ns in row["phases"].items():
            width = ns / longest * (WIDTH - LEFT)
            if width >= 1:
                parts.append(bar(x, y, width, colours.of_part(phase), f"{words.label(phase)} {units.duration(ns)}"))
                seen[phase] = True
            x += width
    bottom = len(rows) * ROW + 8
    return picture("requests.svg", bottom + 16, [*parts, *legend(bottom, seen)], "Eight requests; three are cold")


def search(trace: tprof.Trace) -> tuple[str, str]:
    """The first search: one lane per candidate, cut by what its time was spent on."""
    tables = trace.cold().tables
    first = tables["tunings"][0]
    inside = [row for row in tables["waterfall"] if 0 <= row["at_ns"] - first["at_ns"] < first["wall_ns"]]
    scale, seen, parts = (WIDTH - LEFT) / first["wall_ns"], {}, []
    lanes = [list(rows) for config, rows in itertools.groupby(inside, lambda r: r["config"]) if config]
    for i, rows in enumerate(lanes):
        tile = re.sub(r"\w+: ", "", rows[0]["config"]).split(", ")[:3]
        parts.append(text(0, i * ROW + 14, f"tile {' x '.join(tile[:2])}, step {tile[2]}"))
        for phase, joined in itertools.groupby(rows, lambda r: r["phase"]):
            stretch = list(joined)
            x, ns = LEFT + (stretch[0]["at_ns"] - first["at_ns"]) * scale, _length(stretch)
            if ns * scale >= 0.5:
                parts.append(bar(x, i * ROW, ns * scale, colours.of_part(phase), _said(phase, ns)))
                seen[phase] = True
    bottom = len(lanes) * ROW + 8
    parts += [*legend(bottom, seen), text(WIDTH, bottom + 11, f"0 to {units.duration(first['wall_ns'])}", "end", 12)]
    return picture("search.svg", bottom + 16, parts, "Six candidates, one after another; the first takes longest")


def _length(stretch: list[dict[str, Any]]) -> int:
    return stretch[-1]["end_ns"] - stretch[0]["start_ns"]


def _said(phase: str, ns: int) -> str:
    return f"{words.label(phase)} {units.duration(ns)}"


# The worked example of attribution.md, in microseconds: what ran, and whose time each gap was.
OPERATORS = (("aten::add", 0, 40), ("aten::mul", 60, 130), ("aten::sub", 230, 300))
CALLS = (("launch", 30, 35), ("launch", 120, 128), ("launch", 150, 155), ("sync", 156, 205), ("launch", 280, 290))
KERNELS = (("A", 50, 100), ("B", 140, 180), ("C", 182, 200), ("D", 295, 320))
WHOSE = (
    ("framework", 0, 30), ("launch", 30, 50), ("framework", 100, 120), ("launch", 120, 140), ("turnaround", 180, 182),
    ("sync", 200, 205), ("host", 205, 230), ("framework", 230, 280), ("launch", 280, 295),
)  # fmt: skip


def attribution() -> tuple[str, str]:
    """The worked example: three lanes of what was recorded, and the answer."""
    scale, parts = (WIDTH - LEFT) / 320, []
    for y, label in enumerate(("operators", "calls", "GPU", "whose time it was")):
        parts.append(text(0, 24 + y * 34, label))
    for row, lane in enumerate((OPERATORS, CALLS, KERNELS, WHOSE)):
        for name, start, end in lane:
            colour = ("#c8d1e3", colours.of_part(name), "#37a03c", colours.of_part(name))[row]
            x, width = LEFT + start * scale, (end - start) * scale
            parts.append(bar(x, 10 + row * 34, width, colour, f"{name}: {start} to {end} us"))
            if row in {0, 2}:
                parts.append(text(x + 4, 24 + row * 34, name, size=12))
    edges = sorted({edge for _, *ends in WHOSE for edge in ends})
    parts += [part for e in edges for part in (tick(LEFT + e * scale, 106, 146), _edge(e, scale, edges))]
    bottom = 176
    parts += legend(bottom, dict.fromkeys(name for name, *_ in WHOSE))
    return picture("attribution.svg", bottom + 16, parts, "Four kernels, and whose time each gap between them was")


def _edge(at: int, scale: float, edges: list[int]) -> str:
    crowded = any(0 < at - other < 8 for other in edges)
    return text(LEFT + at * scale, 168 if crowded else 156, str(at), "middle", 10)


def pictures() -> dict[str, str]:
    """Every picture: its file name and its content."""
    trace = tprof.load(SAMPLE, cache=False)
    return dict([tiles(), budgets(trace), search(trace), attribution()])


if __name__ == "__main__":
    for name, content in pictures().items():
        (DOCS / "images" / name).write_text(content)
