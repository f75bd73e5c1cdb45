"""Gates as annotations of GitHub Actions: an error for one that tripped, a warning for one that cannot be judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tprof.present import columns, names

if TYPE_CHECKING:
    from tprof.analyze import Result, Row

_COMMAND: Final = {"tripped": "error", "cannot judge": "warning"}
_ESCAPES: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}


def render(result: Result) -> str:
    """One line per gate that did not pass."""
    rows = [row for row in result.tables["gates"] if row["state"] in _COMMAND]
    return "".join(f"::{_COMMAND[row['state']]} title=tprof check::{_message(row)}\n" for row in rows)


def _message(row: Row) -> str:
    value, limit = (columns.cell(key, row[key]) for key in ("value", "limit"))
    found = f"{value}, allowed {limit} {row['unit']}".strip() if row["state"] == "tripped" else "cannot judge"
    text = names.clean(f"{row['gate']}: {found}" + (f" ({row['why']})" if row["why"] else ""))
    return "".join(_ESCAPES.get(c, c) for c in text)
