"""What changed from one batch to another: between recordings of one name, and with all of a batch as repeats."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

from tprof.analyze.diff import KEYS
from tprof.analyze.noise import compare
from tprof.analyze.result import Result, Row, few
from tprof.batch.ranks import MATTERS
from tprof.events import COLD_PHASES, Note

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from tprof.batch.folder import Folder

Measured = Counter[Any]
_ROW: Final = {"window": "wall_ns", "device busy": "busy_ns", "device idle": "idle_ns", "cold tax": "cold_ns"}
_KINDS = "of two batches times are compared; what changed in kind (paths, fusions, configs) needs the recordings"


def diff(before: Folder, after: Folder, top: int | None = None) -> Result:
    """The tables of `tprof diff`, from what two batches hold.

    Args:
        before: one batch.
        after: the other.
        top: rows of a table.
    """
    sides = before, after
    paired, notes = _paired(*(_rows_by_name(side) for side in sides))
    tables: dict[str, list[Row]] = {"sources": paired}
    for name, measure in _MEASURES.items():
        found = compare(*([dict(m) for m in measure(side)] for side in sides))
        tables[name] = [dict(zip(KEYS[name], k if isinstance(k, tuple) else (k,), strict=True)) | r
                        for k, r in found.items()]  # fmt: skip
    payload: Row = {"before": before.slugs(), "after": after.slugs(), **tables}
    sources = [s for side in sides for slug in side.slugs() for s in (side.finished(slug) or {}).get("sources", [])]
    shown = {name: rows[:top] for name, rows in tables.items()}
    return Result("diff", shown, payload, (Note("kinds-not-compared", _KINDS), *notes), sources)


def _rows_by_name(folder: Folder) -> dict[str, Row]:
    """Figures of each source by its file's name; where others have that name too, by its path below what all share."""
    records = [record for slug in folder.slugs() if (record := folder.finished(slug))]
    paths = [PurePath(record["state"][0]) for record in records]
    often = Counter(path.name for path in paths)
    top = os.path.commonpath(paths) if paths else ""
    names = [p.name if often[p.name] == 1 else str(p.relative_to(top)) for p in paths]
    return dict(zip(names, (record["row"] for record in records), strict=True))


def _paired(before: dict[str, Row], after: dict[str, Row]) -> tuple[list[Row], list[Note]]:
    """What changed of each recording that both have, the largest change first; and what only one of them has."""
    rows = []
    for name in sorted(before.keys() & after.keys()):
        was, now = ({figure: side[name][key] for figure, key in _ROW.items()} for side in (before, after))
        found = compare([was], [now]).items()
        rows += [{"trace": name, "figure": figure} | r for figure, r in found
                 if abs(r["change_ns"]) >= MATTERS * was["window"]]  # fmt: skip
    alone = sorted(before.keys() ^ after.keys())
    message = f"no recording of the same name in both batches: {few(alone)}"
    notes = [Note("unpaired-sources", message, len(alone))] if alone else []
    return sorted(rows, key=lambda r: -abs(r["change_ns"])), notes


def _figures(folder: Folder) -> list[Measured]:
    rows = [record["row"] for slug in folder.slugs() if (record := folder.finished(slug))]
    return [Counter({figure: row[name] for figure, name in _ROW.items()}) for row in rows]


def _each(folder: Folder, table: str, measure: Callable[[pa.Table], Measured]) -> list[Measured]:
    """Of every source; nothing where it has no such table."""
    found = {slug: measure(data) for slug, data in folder.parts(table)}
    return [found.get(slug, Counter()) for slug in folder.slugs()]


def _summed(data: pa.Table, *keys: str) -> Measured:
    found: Measured = Counter()
    for *key, ns in zip(*(data[k].to_pylist() for k in (*keys, "total_ns")), strict=True):
        found[tuple(key) if len(key) > 1 else key[0]] += ns
    return found


def _kernels(data: pa.Table) -> Measured:
    """Device time of work by kernel; a batch keeps it for all shapes together."""
    working = data.filter([purpose == "work" for purpose in data["purpose"].to_pylist()])
    return Counter({(name, "all"): ns for name, ns in _summed(working, "name").items()})


def _requests(data: pa.Table) -> Measured:
    """Requests by name and how many of that name came before."""
    seen: Counter[str] = Counter()
    found: Measured = Counter()
    for name, wall in zip(data["name"].to_pylist(), data["wall_ns"].to_pylist(), strict=True):
        seen[name] += 1
        found[name, seen[name]] = wall
    return found


def _cold(data: pa.Table) -> Measured:
    rows = data.to_pylist()
    return Counter({(r["kernel"], p): r[f"{p}_ns"] for r in rows for p in COLD_PHASES if r.get(f"{p}_ns")})


_MEASURES: Final[dict[str, Callable[[Folder], list[Measured]]]] = {
    "figures": _figures,
    "phases": lambda folder: _each(folder, "wall", lambda data: _summed(data, "part")),
    "kernels": lambda folder: _each(folder, "kernels", _kernels),
    "requests": lambda folder: _each(folder, "requests", _requests),
    "cold_start": lambda folder: _each(folder, "cold_kernels", _cold),
}
