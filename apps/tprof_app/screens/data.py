"""The page Data: what was read, what was lost, how far the clocks can be trusted, and what reproduces each page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import streamlit as st

from tprof_app.panels import heading, warnings
from tprof_app.text import command

if TYPE_CHECKING:
    from tprof_app.recording import Recording
    from tprof_app.state import State


def page(recording: Recording, state: State) -> None:
    """Sources, warnings, commands."""
    warnings(recording.ask("summary"))
