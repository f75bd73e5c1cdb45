"""The page of `tprof cold`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tprof_app.panels import panel

if TYPE_CHECKING:
    from tprof_app.recording import Recording
    from tprof_app.state import State


def page(recording: Recording, state: State) -> None:
    """Every table of the result."""
    result = recording.ask("cold", state.options)
    for name in result.tables:
        panel(result, name, state.command("cold"))
