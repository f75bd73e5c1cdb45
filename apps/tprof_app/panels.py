"""The parts that pages are made of: a panel draws what a `Result` says, and names the command that prints the same.

Nothing here computes. Names from a trace reach the page through `plain`, a table or an escaped figure, never as markup.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from tprof.present import columns, tabular, units, views, words
from tprof_app.grid import grid
from tprof_app.text import plain, with_code

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import plotly.graph_objects as go

    from tprof.analyze.result import Result, Row
    from tprof.present.cards import Card

_ROWS_SEEN: Final = 10  # of a table without scrolling
_ROW_PIXELS: Final = 35
_ABREAST: Final = 3  # cards
_DETAILS: Final = {"kernel": "Kernel", "shape_key": "Shape", "why": "Why", "fix": "What to do"}


def heading(title: str, said: str, command: str) -> None:
    """What a panel shows, of what, and the command that prints the same figures."""
    st.subheader(title, anchor=False, divider="gray")
    if said:
        st.caption(with_code(said))
    if command:
        st.code(command, language="bash", wrap_lines=True)


def cards(shown: Sequence[Card]) -> None:
    """Figures, each with its denominator and basis."""
    for first in range(0, len(shown), _ABREAST):
        for column, card in zip(st.columns(_ABREAST), shown[first : first + _ABREAST], strict=False):
            with column.container(border=True, height="stretch"):
                st.metric(plain(card.label), card.value)
                st.caption(plain(", ".join(part for part in (card.note, card.basis) if part)))


def finding(number: int, row: Row, cost: str) -> None:
    """One of a ranked list: what it is, what it costs, why, and what to do."""
    title = words.sentence(row["title"])
    lines = [f"**{number}. {plain(title[:1].upper() + title[1:])}**: {plain(cost)}, {row['basis']}"]
    lines += [f"{said}: {plain(words.sentence(row[key]))}" for key, said in _DETAILS.items() if row.get(key)]
    st.markdown("  \n".join(lines))


def panel(  # noqa: PLR0913  a panel has as many parts, each with its name
    result: Result, name: str, command: str, *, figure: go.Figure | None = None, alt: str = "", empty: str = "",
    title: str = "", fold: bool = False,
) -> None:  # fmt: skip
    """One table of a result as its view says: heading, figure, table, downloads.

    Args:
        result: where the table is.
        name: of the table.
        command: that prints the same: `state.command(verb)`.
        figure: drawn above the table.
        alt: the figure in words, for those who cannot see it.
        empty: what to say, and to do, if there are no rows.
        title: instead of the view's heading.
        fold: the table is behind a click; for a figure that says it all.
    """
    view, rows = views.view(result, name), result.tables[name]
    heading(title or view.heading, view.caption, command)
    if not rows:
        st.info(empty or "This part of the recording has nothing of it.", icon=":material/info:")
        return
    key = f"{result.title}-{name}"
    if figure is not None:
        chart(figure, alt or view.heading, f"{key}-figure")
    with st.expander("Table") if fold else nullcontext():
        table(result, name, key=f"{key}-table")
    downloads(result, name, figure)


def table(result: Result, name: str, *, rows: Sequence[Row] | None = None, key: str, pick: bool = False) -> Row | None:
    """A table of a result; long ones are loaded as they are scrolled.

    Args:
        result: where the table is.
        name: of the table.
        rows: only these of its rows.
        key: unique on the page.
        pick: a row can be selected.

    Returns:
        The selected row, if any.
    """
    rows = result.tables[name] if rows is None else rows
    data, config = grid(rows, views.view(result, name).columns, or_load=columns.or_load(result))
    if not data.num_columns:
        return None
    height = _ROW_PIXELS * (min(len(rows), _ROWS_SEEN) + 1) + 3
    chosen: Any = st.dataframe(
        data, column_config=config, hide_index=True, height=height, key=key, alt=views.view(result, name).heading,
        on_select="rerun" if pick else "ignore", selection_mode="single-row",
    )  # fmt: skip
    return next((rows[i] for i in chosen.selection.rows), None) if pick else None


def chart(figure: go.Figure, alt: str, key: str, **more: Any) -> Any:
    """A figure, with its words for those who cannot see it; its button saves a PNG."""
    image = {"format": "png", "filename": f"tprof-{key}", "scale": 2}
    config = {
        "displaylogo": False, "scrollZoom": False, "modeBarButtons": [["toImage"]], "toImageButtonOptions": image,
    }  # fmt: skip
    return st.plotly_chart(figure, key=key, alt=plain(alt), config=config, **more)


def downloads(result: Result, name: str, figure: go.Figure | None = None) -> None:
    """Buttons for one table and its figure; nothing is made before it is asked for."""
    file = f"tprof-{result.title}-{name}".replace(" ", "-")
    with st.popover("Download", icon=":material/download:", type="tertiary"):
        _button("CSV", f"{file}.csv", "text/csv", lambda: tabular.csv_text(result, name))
        _button("Parquet", f"{file}.parquet", "application/octet-stream", lambda: tabular.parquet_bytes(result, name))
        if figure is not None:
            _button("Figure as HTML", f"{file}.html", "text/html", lambda: figure.to_html(include_plotlyjs=True))
            st.caption("Figure as PNG: the camera above it.")


def _button(label: str, file: str, mime: str, make: Callable[[], str | bytes]) -> None:
    st.download_button(label, make, file, mime, key=f"get-{file}", on_click="ignore", type="tertiary")


def warnings(result: Result, most: int = 4) -> None:
    """What was lost, repaired or cannot be known; what several sources say alike, once."""
    counts: dict[tuple[str, str], int] = {}
    for note in result.notes:
        key = note.code, note.message.replace(note.source, PurePath(note.source).name) if note.source else note.message
        counts[key] = counts.get(key, 0) + note.count
    said = [plain(f"{code} ({units.count(count)}): {message}") for (code, message), count in counts.items()]
    for line in said[:most]:
        st.warning(line, icon=":material/warning:")
    if len(said) > most:
        with st.expander(f"{len(said) - most} more warnings"):
            st.markdown("\n".join(f"- {line}" for line in said[most:]))
