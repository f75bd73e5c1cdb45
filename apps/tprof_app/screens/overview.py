"""The page Overview: where the cold start and the idle time went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tprof_app.panels import warnings

if TYPE_CHECKING:
    from tprof_app.recording import Recording
    from tprof_app.state import State


def page(recording: Recording, state: State) -> None:
    """All."""
    warnings(recording.ask("summary", state.options))
