"""Columns of a table as people see them, and how each value is written.

CSV, Parquet and JSON carry every column under its own name; this is for text, Markdown and HTML.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tprof.events import PURPOSES
from tprof.present import names, units, words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tprof.analyze import Result

Row = dict[str, Any]
NAME_KEYS: Final = ("name", "kernel", "ended_by", "origin", "operator")  # shortened by what they are made of
PHASE_KEYS: Final = ("phase", "mostly", "part", "cause", "step")  # shown in the colour of the phase
# What may be cut where the page is narrow.
FLEXIBLE: Final = frozenset({
    *NAME_KEYS,
    "why", "guard", "best", "before", "after", "reason", "function", "key", "asked_by", "source", "folder", "value",
    "advice", "includes", "config", "thread", "message", "label", "verdict", "winner", "request", "shape",
    "implementation", "answer", "question", "chain", "found", "case",
})  # fmt: skip
EDGES: Final = ("from_ns", "below_ns")  # of ranges that lie decades apart: no one unit fits a column
WRAPPED: Final = ("advice", "verdict", "reason", "question", "answer", "found")  # to be read to their end
_PLACES: Final = ("source", "asked_by")  # lines of files, shown without their folders
_CONFIGS: Final = ("config", "winner", "best")
_DEFAULTS: Final = re.compile(r", (num_ctas: 1|(maxnreg|ir_override): None)\b")  # says nothing of a configuration
_UNIT: Final = re.compile(r"_(ns|share|bytes|ratio)$")
_YES_NO: Final = {True: "yes", False: "no"}
_BY_SUFFIX: Final = (
    ("_ns", units.duration), ("share", units.share), ("_bytes", units.size), ("_ratio", units.ratio),
    ("_slice", units.spark),
)  # fmt: skip


@dataclass(frozen=True)
class Column:
    """One column of a view.

    Attributes:
        key: column of the result's rows.
        heading: what a person reads above it.
        rank: the larger, the earlier it is dropped where the page is narrow; 0 always stays.
        sparse: dropped where no row has anything to say (null, zero, empty).
        varied: dropped where all rows say the same.
    """

    key: str
    heading: str
    rank: int = 0
    sparse: bool = False
    varied: bool = False

    @property
    def numeric(self) -> bool:
        """Whether it aligns to the right."""
        return self.key.endswith(("_ns", "_share", "_bytes", "_ratio")) or self.key in _COUNTS


@dataclass(frozen=True)
class View:
    """How one table is shown: its heading, what its figures mean, and its columns.

    `whole`: never cut; `most`: rows on a page that shows the tops of its tables.
    """

    heading: str
    caption: str
    columns: tuple[Column, ...]
    whole: bool = False
    most: int = 12


def table(heading: str, columns: str, caption: str = "", *, whole: bool = False, most: int = 12) -> View:
    """A view whose columns are written as `key RANK?*: heading`, separated by bars.

    Args:
        heading: of the table.
        columns: each is a key, then its rank where that is not 0, `?` for sparse, `*` for varied; a heading where it
            is another than the key without its unit.
        caption: what its figures mean.
        whole: never cut.
        most: rows on a page that shows the tops of its tables.
    """
    return View(heading, caption, tuple(map(_column, columns.split(" | "))), whole, most)


def _column(text: str) -> Column:
    key, _, said = text.partition(": ")
    key, _, how = key.partition(" ")
    heading = said if ": " in text else _UNIT.sub("", key).replace("_", " ")
    return Column(key, heading, int(how.rstrip("?*") or 0), "?" in how, "*" in how)


_COUNTS: Final = frozenset({
    "rows_read", "rows_dropped", "rows",
    "tunings", "values", "useful", "rank", "blocks_per_sm", "waves", "break_even_calls", "failed", "variants",
    "repeats", "registers", "spills", "calls", "shapes", "events", "overlaps", "unlinked", "spans", "gaps",
    "launches", "repetitions", "candidates", "first_uses", "compiles", "disk_hits", "module_loads", "loads",
    "count", "requests", "warnings", "cold_requests", "misses", "keys", "hot_keys", "once", "n", "other_kernels",
    "last_in", "collectives", "processes", "sources", "request_misses", "devices",
    "stretches", "amortised_after", "pays_after", "kernels", *PURPOSES,
})  # fmt: skip


def shown(columns: Sequence[Column], rows: Sequence[Row]) -> list[Column]:
    """Columns that the rows have, without those that would say nothing."""
    values = {
        c: {_plain(v) if isinstance(v := row.get(c.key), list) else v for row in rows if c.key in row} for c in columns
    }
    return [
        c for c, v in values.items() if v and not (c.sparse and v <= {None, 0, ""}) and not (c.varied and len(v) == 1)
    ]


def cell(key: str, value: Any, *, or_load: bool = False) -> str:
    """One value as people read it, full and safe to show; foreign names are not shortened here."""
    if value is None or isinstance(value, bool):
        return units.UNKNOWN if value is None else _YES_NO[value]
    if key in _CONFIGS:
        return _DEFAULTS.sub("", names.clean(value))
    for suffix, written in _BY_SUFFIX:
        if key.endswith(suffix):
            return written(value)
    if key in _PLACES:
        value = str(value).rpartition("/")[2]
    if key in PHASE_KEYS:
        return words.part_label(value, or_load=or_load)
    return words.sentence(value) if key == "includes" else _plain(value)


def _plain(value: Any) -> str:
    if isinstance(value, int):
        return units.count(value)
    return f"{value:.3g}" if isinstance(value, float) else names.clean(value)


def or_load(result: Result) -> bool:
    """Whether `compile` of this result holds loading too, because the trace cannot tell them apart."""
    return bool(result.payload.get("cold", result.payload).get("compile_includes"))
