"""The page Overview: where the cold start and the idle time went."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from tprof.errors import TprofError
from tprof_app import panels
from tprof_app.sources import Choice, choices, opened, uploaded, without_folder
from tprof_app.text import plain

if TYPE_CHECKING:
    from collections.abc import Sequence


def page(given: Sequence[str]) -> None:
    """Draw the page.

    Args:
        given: sources of the command line.
    """
    st.set_page_config(page_title="tprof", layout="wide")
    st.header("Why was the first request slow, and why is the GPU idle?", anchor=False)
    try:
        choice = _picked(given)
        if choice:
            _show(choice)
    except TprofError as error:
        st.error(plain(without_folder(str(error))), icon=":material/error:")


def _picked(given: Sequence[str]) -> Choice | None:
    """What the user wants to see: an upload wins over the list."""
    with st.sidebar:
        st.header("Recording", anchor=False)
        files = st.file_uploader(
            "Open a recording", accept_multiple_files=True,
            help="A torch.profiler trace or an Nsight Systems export, gzipped or not. "
            "Several files are read as one recording. It stays on the machine that runs this app. "
            "Open large ones by path instead: `tprof app PATH`.",
        )  # fmt: skip
        if files:
            return uploaded(files)
        return st.selectbox("Or one of these", choices(given), format_func=lambda choice: choice.label)


def _show(choice: Choice) -> None:
    """All panels of one recording."""
    answers = opened(choice)
    summary, idle = answers.summary, answers.idle
    panels.headline(summary)
    panels.cards(summary)
    panels.warnings(summary)
    named = [without_folder(path) for path in choice.paths]
    panels.wall(summary, named)
    panels.requests(summary, named)
    panels.idle(idle, named, or_load=panels.or_load(summary))
    panels.findings(summary, named)
    panels.sources(summary, named)
