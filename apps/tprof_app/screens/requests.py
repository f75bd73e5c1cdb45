"""The page of `tprof requests`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tprof_app.panels import panel

if TYPE_CHECKING:
    from tprof_app.recording import Recording
    from tprof_app.state import State


def page(recording: Recording, state: State) -> None:
    """Every table of the result."""
    result = recording.ask("requests", state.options)
    for name in result.tables:
        panel(result, name, state.command("requests"))
