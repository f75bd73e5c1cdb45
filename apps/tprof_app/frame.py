"""What is around every page: navigation, the recording's picker, and what is shown where there is nothing to show."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Final

import pandas as pd  # noqa: F401  before any session draws: plotly takes what another thread has half imported for pandas
import streamlit as st

from tprof.errors import TprofError, UsageError
from tprof.present.colours import of_part
from tprof_app import batches, picker, state
from tprof_app.recording import opened
from tprof_app.sources import chosen, without_folder
from tprof_app.state import State
from tprof_app.text import plain

if TYPE_CHECKING:
    from collections.abc import Mapping

    from streamlit.navigation.page import StreamlitPage

    from tprof_app.served import Served

# Title, module of `tprof_app.screens` (its function `page(recording, state)` draws the page), icon.
PAGES: Final = (
    ("Batch", "batch", "stacks"),
    ("Overview", "overview", "speed"),
    ("Cold start", "cold", "ac_unit"),
    ("Timeline", "timeline", "view_timeline"),
    ("Shapes", "shapes", "category"),
    ("Idle", "idle", "hourglass_empty"),
    ("Kernels", "kernels", "memory"),
    ("Requests", "requests", "swap_vert"),
    ("Compare", "compare", "compare_arrows"),
    ("Data", "data", "database"),
)
_OF_BATCH: Final = ("Batch", "Compare")
_STYLE: Final = """<style>
[data-testid=stMetricValue], [data-testid=stMarkdownContainer] {font-variant-numeric: tabular-nums}
[data-testid=stMainBlockContainer] {padding-top: 3rem}
</style>"""


def show(served: Served, first: str = "Overview") -> None:
    """Draw the app.

    Args:
        served: what may be opened.
        first: title of the page that an address without a page shows.
    """
    st.set_page_config(page_title="tprof", page_icon=_icon(), layout="wide")
    st.html(_STYLE)
    state.begin()
    batch = _is_batch(picker.named(served), served)
    pages: dict[str, StreamlitPage] = {}
    for title, module, icon in PAGES:
        draw = partial(_page, title, module, served, pages)
        pages[title] = st.Page(
            draw, title=title, icon=f":material/{icon}:", url_path=module, default=title == first,
            visibility="visible" if _fits(title, batch=batch) else "hidden",
        )  # fmt: skip
    st.navigation(list(pages.values())).run()


def _fits(title: str, *, batch: bool) -> bool:
    """Whether a page is one of a batch, or of a recording."""
    return title in _OF_BATCH if batch else title != "Batch"


def _is_batch(label: str, served: Served) -> bool:
    try:
        return bool(label) and chosen(label, served).batch
    except TprofError:  # the page says what is wrong with it
        return False


def _icon() -> str:
    """Bars of a timeline as SVG: an icon by name would be fetched from another host."""
    bars = (("compile", 28), ("autotune", 20), ("busy.work", 12))
    drawn = (
        f'<rect x="2" y="{3 + 9 * i}" width="{width}" height="7" fill="{of_part(part)}"/>'
        for i, (part, width) in enumerate(bars)
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">{"".join(drawn)}</svg>'


def _page(title: str, module: str, served: Served, pages: Mapping[str, StreamlitPage]) -> None:
    """One page in whatever state the recording is."""
    st.header(title, anchor=False)
    try:
        label = picker.sidebar(served)
        if not label:
            picker.welcome(served)
            return
        choice = chosen(label, served)
        if not _fits(title, batch=choice.batch):
            st.switch_page(pages["Batch" if choice.batch else "Overview"], query_params=state.params())
        recording = batches.opened(*choice.paths) if choice.batch else opened(choice.paths, choice.label)
        paths = tuple(without_folder(path, served) for path in choice.paths)
        view = State(paths, recording.extent, served, pages)
        if title != "Timeline":  # which shows its window itself, and the way back
            _window(view)
        import_module(f"tprof_app.screens.{module}").page(recording, view)
    except UsageError as error:
        _problem(error, served)
        st.button("Show the whole recording", on_click=state.change, kwargs={"window": None, "range": None})
    except TprofError as error:
        _problem(error, served)
    except OSError as error:
        _problem(TprofError(f"{error.filename}: {error.strerror}"), served)


def _problem(error: TprofError, served: Served) -> None:
    st.error(plain(without_folder(str(error), served)), icon=":material/error:")


def _window(view: State) -> None:
    """Which part is shown, and the way back to all of it."""
    if view.window is None:
        return
    low, high = (edge - view.extent[0] for edge in view.window)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"Only from {low / 1e6:,.3f} ms to {high / 1e6:,.3f} ms after the first event")
        st.button(
            "Show all", on_click=state.change, kwargs={"window": None}, type="tertiary", icon=":material/zoom_out_map:"
        )
