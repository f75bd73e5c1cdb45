"""Results as Markdown, for an issue or a pull request: full names, every row, nothing that a name could inject."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tprof.present import columns, names, sentence, views

if TYPE_CHECKING:
    from tprof.analyze import Result

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~<>&@-])")


def render(result: Result) -> str:
    """All tables of a result, each under a heading."""
    parts = [f"# {result.title}", *(f"- {escape(sentence.source_line(s))}" for s in result.sources)]
    if result.title == "summary":
        parts += ["", escape(sentence.answer(result))]
    for name in result.tables:
        parts += _table(result, name)
    parts += ["", "## Warnings", ""] if result.notes else []
    parts += [f"- `{note.code}` {escape(note.message)} ({note.count:,})" for note in result.notes]
    return "\n".join(parts) + "\n"


def escape(text: object) -> str:
    """Foreign text as itself: no markup, no HTML, no mention, one line."""
    return (
        _SPECIAL.sub(r"\\\1", names.clean(text)).replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;")
    )


def _table(result: Result, name: str) -> list[str]:
    view, rows = views.view(result, name), result.tables[name]
    heading = ["", f"## {view.heading}", "", view.caption, ""]
    if not rows:
        return [*heading, "None."]
    kept, told = columns.shown(view.columns, rows), columns.or_load(result)
    return [
        *heading,
        _line([c.heading for c in kept]),
        _line(["---:" if c.numeric else "---" for c in kept]),
        *(_line([_cell(c, row, or_load=told) for c in kept]) for row in rows),
    ]


def _cell(column: columns.Column, row: dict[str, Any], *, or_load: bool) -> str:
    text = columns.cell(column.key, row.get(column.key), or_load=or_load)
    if column.key in columns.NAME_KEYS and "`" not in text and row.get(column.key):
        return f"`{text}`".replace("|", "\\|")
    return text if column.numeric else escape(text)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
