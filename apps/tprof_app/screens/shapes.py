"""The page Shapes: which shapes are worth preparing, their lives, and how concentrated the calls are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tprof.present import columns, figures_shapes, units
from tprof_app import choices
from tprof_app.panels import panel
from tprof_app.state import segments

if TYPE_CHECKING:
    from collections.abc import Callable

    from tprof.analyze import Result
    from tprof_app.recording import Recording
    from tprof_app.state import State

_NO_CALL: Final = (
    "No call of a compiled kernel lies in this part of the recording. Record with `tprof record`, or the GPU with a "
    "profiler."
)
_NO_BUCKET: Final = (
    "No bucket is declared, or none covers these kernels. Name groups of shapes in `[tool.tprof.buckets]` of "
    "pyproject.toml in the folder where the app is started."
)
_ALL_CHARGED: Final = "All cold time is charged to a shape."


def page(recording: Recording, state: State) -> None:
    """One part of the result at a time."""
    every = recording.ask("shapes", choices.bucketed(state.options))
    kernel = choices.kernel(state, (row["kernel"] for row in every.tables["concentration"]))
    part = segments(state, "part", "Show", list(_PARTS), label_visibility="collapsed")
    result = recording.ask("shapes", choices.about(choices.bucketed(state.options), kernel))
    _PARTS[part](_Asked(result, state, choices.flags(kernel)))


@dataclass(frozen=True)
class _Asked:
    """What the parts share."""

    result: Result
    state: State
    flags: tuple[str, ...]

    def command(self, table: str = "") -> str:
        """The command line that prints the result, or one of its tables."""
        return self.state.command("shapes", *self.flags, *(("--format", "csv", "--table", table) if table else ()))


def _verdicts(asked: _Asked) -> None:
    rows = asked.result.tables["shapes"]
    figure = figures_shapes.first_and_warm(rows)
    alt = f"First call against warm calls of {units.count(min(len(rows), figures_shapes.SHAPES))} shapes"
    panel(asked.result, "shapes", asked.command(), figure=figure, alt=alt, empty=_NO_CALL)


def _lives(asked: _Asked) -> None:
    steps = asked.result.tables["timeline"]
    figure = figures_shapes.lives(steps, or_load=columns.or_load(asked.result))
    alt = "Per shape: what was cold before a call, by phase, and each call as a tick"
    panel(asked.result, "timeline", asked.command("timeline"), figure=figure, alt=alt, empty=_NO_CALL)


def _concentration(asked: _Asked) -> None:
    figure = figures_shapes.concentration(asked.result.payload["concentration"])
    alt = "Share of a kernel's calls by its most frequent shapes"
    panel(asked.result, "concentration", asked.command(), figure=figure, alt=alt, empty=_NO_CALL)
    panel(asked.result, "buckets", asked.command(), empty=_NO_BUCKET)


def _uncharged(asked: _Asked) -> None:
    panel(asked.result, "uncharged", asked.command(), empty=_ALL_CHARGED)


_PARTS: Final[dict[str, Callable[[_Asked], None]]] = {
    "Verdicts": _verdicts,
    "Lives": _lives,
    "Concentration and buckets": _concentration,
    "Not charged": _uncharged,
}
