"""Draws `docs/images/architecture.svg`: the rooms of tprof and who imports whom, from the code as it is.

Rows are the layers of the contract "arrows" in `pyproject.toml`. An import that follows from others is not drawn.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / part) for part in ("", "apps", "kernels")]

import grimp  # noqa: E402  it imports the packages that it draws: their folders come first

from docs.make_pictures import INK, bar, picture, text  # noqa: E402  as above

TARGET = ROOT / "docs" / "images" / "architecture.svg"
OUTSIDE = ("tprof_app", "tprof_kernels")
EVERYWHERE = "errors"  # imported by every room: no arrows
BOX, HIGH, STEP, WIDTH = 112, 34, 86, 860
ASIDE = (-40, 24, 60)  # rows are shifted against each other, so that no arrow runs behind a box
KINDS = {"cli": "#f6d9c9", "present": "#f6d9c9", "tprof_app": "#f6d9c9", "record": "#d3ead4", "metrics": "#d3ead4"}


def layers() -> list[list[str]]:
    """Rooms that there are, from the top to the bottom, as the contract has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (arrows,) = [contract for contract in contracts if contract["id"] == "arrows"]
    rows = [[room for room in re.findall(r"\w+", row) if _is_there(room)] for row in arrows["layers"]]
    return [list(OUTSIDE), *filter(None, rows)]


def _is_there(room: str) -> bool:
    return (ROOT / "tprof" / f"{room}.py").exists() or (ROOT / "tprof" / room / "__init__.py").exists()


def imports(rooms: set[str]) -> dict[str, set[str]]:
    """Room -> rooms that its modules import, not for types alone."""
    graph = grimp.build_graph("tprof", *OUTSIDE, exclude_type_checking_imports=True, cache_dir=None)
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for module in graph.modules:
        for target in graph.find_modules_directly_imported_by(module):
            here, there = _room(module), _room(target)
            if here != there != EVERYWHERE and {here, there} <= rooms:
                found[here].add(there)
    return found


def _room(module: str) -> str:
    package, _, rest = module.partition(".")
    return rest.partition(".")[0] if package == "tprof" else package


def reduced(edges: dict[str, set[str]]) -> list[tuple[str, str]]:
    """The edges that no longer path replaces."""
    return sorted((a, b) for a, targets in edges.items() for b in targets if not _around(a, b, edges))


def _around(start: str, end: str, edges: dict[str, set[str]]) -> bool:
    seen, todo = set(), [room for room in edges[start] if room != end]
    while todo:
        room = todo.pop()
        if room == end:
            return True
        if room not in seen:
            seen.add(room)
            todo += edges[room]
    return False


def render() -> str:
    """The picture."""
    rows = layers()
    rooms = {room for row in rows for room in row}
    arrows = reduced(imports(rooms))
    place: dict[str, tuple[float, float]] = {}
    for y, row in enumerate(rows):  # each below what imports it, as far as there is room
        above = {room: [place[a][0] for a, b in arrows if b == room and a in place] for room in row}
        row.sort(key=lambda room: sum(above[room]) / max(1, len(above[room])))
        place |= {room: ((i + 0.5) * WIDTH / len(row) - BOX / 2 + ASIDE[y % 3], y * STEP) for i, room in enumerate(row)}
    parts = [_arrow(place[a], place[b]) for a, b in arrows]
    for room, (x, y) in sorted(place.items()):
        parts += [bar(x, y, BOX, KINDS.get(room, "#dbe7f5"), room, HIGH), text(x + BOX / 2, y + 22, room, "middle")]
    height = (len(rows) - 1) * STEP + HIGH
    return picture("", height, parts, "The rooms of tprof; an arrow leads from a room to one that it imports")[1]


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> str:
    x1, y1, x2, y2 = start[0] + BOX / 2, start[1] + HIGH, end[0] + BOX / 2, end[1] - 2
    back = (y2 - y1) * 0.4
    curve = f"M{x1:.0f} {y1:.0f} C{x1:.0f} {y1 + back:.0f} {x2:.0f} {y2 - back:.0f} {x2:.0f} {y2:.0f}"
    head = f"M{x2 - 4:.0f} {y2 - 7:.0f} L{x2:.0f} {y2:.0f} L{x2 + 4:.0f} {y2 - 7:.0f}"
    return f'<path d="{curve} {head}" fill="none" stroke="{INK}" stroke-opacity="0.5"/>'


if __name__ == "__main__":
    TARGET.write_text(render())
