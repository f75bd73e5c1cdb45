"""The page of `tprof diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from tprof_app.recording import Recording
    from tprof_app.state import State


def page(recording: Recording, state: State) -> None:
    """Two recordings."""
    st.code(state.command("diff"))
