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
    from tprof.buckets import BucketSet
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


def request_name(row: Row) -> str:
    """Name and id of a request."""
    return f"{row['name']} {row['id'] or ''}".strip()


def _request(row: Row) -> str:
    return f"{request_name(row)}, at {units.duration(row['at_ns'])}: {units.duration(row['cold_tax_ns'])} cold"


def kernel(state: State, names: Iterable[str | None]) -> str:
    """A glob of one of the kernels of a table, or what the address says; empty for all."""
    said = {"": "All kernels"} | {escape(name): shortened(name, _NAME) for name in names if name}
    here = state.get("kernel")
    said |= {} if here in said else {here: here}
    return one_of(state, "kernel", "Kernel", list(said), format_func=lambda glob: said[glob])


def about(options: Options, kernels: str) -> Options:
    """The same question about the kernels of a glob; about all of them without one."""
    return replace(options, kernels=(kernels,) if kernels else ())


def flags(kernels: str) -> tuple[str, ...]:
    """What the command line adds for `about`."""
    return ("--kernel", kernels) if kernels else ()


def buckets() -> tuple[BucketSet, ...]:
    """Those of the settings, as the command line has them.

    Raises:
        UsageError: a setting is wrong.
    """
    return load_settings(Path.cwd()).buckets


def bucketed(options: Options) -> Options:
    """With the buckets of the settings."""
    return replace(options, buckets=buckets())
