"""What several pages let a user choose: a request's window, a kernel, one row of a table."""

from __future__ import annotations

from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tprof.cli.settings import load_settings
from tprof.present import units
from tprof.present.names import kernel as shortened
from tprof_app.state import one_of, window_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tprof.analyze import Options
    from tprof.analyze.result import Row
    from tprof_app.recording import Recording
    from tprof_app.state import State

_OFFERED: Final = 200  # requests in a list
_NAME: Final = 60  # characters of a kernel's name in a list


def cold_request(recording: Recording, state: State) -> None:
    """Which request the page is about: choosing one makes its time the window."""
    rows = recording.ask("requests", replace(state.options, window=None)).tables["requests"]
    cold = [row for row in rows if row["cold_tax_ns"]][:_OFFERED]
    said = {window_text(row["start_ns"], row["start_ns"] + row["wall_ns"]): _request(row) for row in cold}
    here = state.get("window")
    said = {"": "The whole recording"} | ({here: "The window that is shown"} if here else {}) | said
    one_of(state, "window", "Request", list(said), format_func=lambda text: said[text])


def _request(row: Row) -> str:
    name = f"{row['name']} {row['id'] or ''}".strip()
    return f"{name}, at {units.duration(row['at_ns'])}: {units.duration(row['cold_tax_ns'])} cold"


def kernel(state: State, names: Iterable[str | None], every: str = "All kernels") -> str:
    """One of the kernels of a table, or none."""
    offered = ["", *dict.fromkeys(name for name in names if name)]
    here = state.get("kernel")
    offered += [here] if here not in offered else []
    return one_of(
        state, "kernel", "Kernel", offered, format_func=lambda name: shortened(name, _NAME) if name else every
    )


def about(options: Options, name: str) -> Options:
    """The same question about one kernel; about all of them without a name."""
    return replace(options, kernels=(escape(name),) if name else ())


def flags(name: str) -> tuple[str, ...]:
    """What the command line adds for `about`."""
    return ("--kernel", escape(name)) if name else ()


def bucketed(options: Options) -> Options:
    """With the buckets of the settings, as the command line has them.

    Raises:
        UsageError: a setting is wrong.
    """
    return replace(options, buckets=load_settings(Path.cwd()).buckets)
