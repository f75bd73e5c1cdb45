"""How a recording is chosen: from a list, from the served folder, or by upload."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import streamlit as st

from tprof.errors import TprofError
from tprof_app import sources, state
from tprof_app.text import plain

if TYPE_CHECKING:
    from tprof_app.served import Served

_UP = ".. (up)"


def named(served: Served) -> str:
    """The label of the recording that the address names, else the first of the command line; empty for none."""
    if not state.parameter("source") and served.given:
        state.change(source=next((choice.label for choice in sources.offered(served)), None))
    return state.parameter("source")


def sidebar(served: Served) -> str:
    """The label of the recording that is shown, or that was picked just now; empty for none."""
    label = state.parameter("source")
    labels = [choice.label for choice in sources.offered(served)]
    with st.sidebar:
        _list([*labels, label] if label and label not in labels else labels, label)
        if served.root:
            with st.expander("Open from the folder", icon=":material/folder:"):
                _folder(served)
        with st.expander("Upload", icon=":material/upload:"):
            _upload(served)
    return state.parameter("source")


def welcome(served: Served) -> None:
    """Nothing is open: what tprof answers, and one click to see it."""
    st.markdown("**Why was the first request slow, and why is the GPU idle?**")
    st.markdown(
        "Open a recording at the left: a torch.profiler trace, an Nsight Systems export, or a tprof run directory. "
        "Or look at a bundled one, recorded on an H200:"
    )
    with st.container(horizontal=True):
        for choice in sources.offered(served):
            st.button(plain(choice.label), on_click=_open, args=(choice.label,), icon=":material/play_arrow:")
    st.caption("From the command line: `tprof app PATH`. To record: `tprof record -- python serve.py`.")


def _open(label: str | None) -> None:
    """Another recording: nothing of the view of the one before fits it."""
    st.session_state["params"] = {}
    state.change(source=label)


def _list(labels: list[str], label: str) -> None:
    st.session_state["picked"] = label or None
    st.selectbox(
        "Recording or batch", labels, key="picked", placeholder="Pick one",
        on_change=lambda: _open(st.session_state["picked"]),
    )  # fmt: skip


def _folder(served: Served) -> None:
    """One folder below the served one: into a folder, up, or open."""
    here = st.session_state.get("folder", "")
    if not served.below(here).is_dir():  # it was there a moment ago
        here = ""
    folders, recordings = served.listed(here)
    names = [*([_UP] if here else []), *(f"{name}/" for name in folders), *recordings]
    st.caption(plain(f"{served.root.name if served.root else ''}/{here}"))
    st.session_state["entry"] = None
    st.selectbox(
        "Folder or recording", names, key="entry", placeholder="Pick one" if names else "Nothing here",
        on_change=_entered, args=(here,),
    )  # fmt: skip


def _entered(here: str) -> None:
    name = st.session_state["entry"]
    if name == _UP:
        st.session_state["folder"] = "" if "/" not in here else str(PurePosixPath(here).parent)
    elif name and name.endswith("/"):
        st.session_state["folder"] = f"{here}/{name[:-1]}".lstrip("/")
    elif name:
        _open(sources.FOLDER + f"{here}/{name}".lstrip("/"))


def _upload(served: Served) -> None:
    """Files from the user's machine; several are read as one recording."""
    files = st.file_uploader(
        "A trace, gzipped or not", accept_multiple_files=True, key="files",
        help="Several files are read as one recording. They stay on the machine that runs this app. "
        "Open large ones by path instead: `tprof app PATH`.",
    )  # fmt: skip
    ids = [file.file_id for file in files]
    if not files or ids == st.session_state.get("uploaded"):
        return
    st.session_state["uploaded"] = ids
    try:
        _open(sources.uploaded(files, served).label)
    except TprofError as error:
        st.error(plain(sources.without_folder(str(error), served)))
        return
    st.rerun()
