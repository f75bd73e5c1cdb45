"""What is shown: recording, window and filters. The address of the page holds all of it, so every view is a link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from tprof.analyze import Options
from tprof.cli.window import parse_window
from tprof_app.text import command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from streamlit.navigation.page import StreamlitPage

    from tprof_app.served import Served

Params = dict[str, list[str]]
_KEPT: Final = "params"  # in the session: a click on another page empties the address


def begin() -> None:
    """Make the address and the session agree: what the address says wins, an empty one is filled again."""
    told = {name: st.query_params.get_all(name) for name in st.query_params}
    if told:
        st.session_state[_KEPT] = told
    elif known := st.session_state.get(_KEPT):
        st.query_params.from_dict(known)


def params() -> Params:
    """All parameters."""
    found: Params = st.session_state.setdefault(_KEPT, {})
    return found


def parameter(name: str, default: str = "") -> str:
    """A parameter's value; the last if there are several."""
    return (params().get(name) or [default])[-1]


def changed(changes: Mapping[str, str | Sequence[str] | None]) -> Params:
    """The parameters after some changes; an empty value takes one away.

    Another window has another way to it, and nothing is picked in it, unless the changes say so.
    """
    if "window" in changes:
        changes = {"crumb": None, "pick": None, **changes}
    lists = {name: [value] if isinstance(value, str) else list(value or ()) for name, value in changes.items()}
    return {name: values for name, values in (params() | lists).items() if any(values)}


def change(**changes: str | Sequence[str] | None) -> None:
    """Change parameters, in the address too; the page shows it when it runs next."""
    st.session_state[_KEPT] = changed(changes)
    st.query_params.from_dict(st.session_state[_KEPT])


@dataclass(frozen=True)
class State:
    """The view of one recording.

    Attributes:
        paths: of the recording, as a user may see them: for command lines.
        extent: first and last instant of the recording, ns.
        served: what else may be opened.
        pages: by title.
    """

    paths: tuple[str, ...]
    extent: tuple[int, int]
    served: Served
    pages: Mapping[str, StreamlitPage]

    def get(self, name: str, default: str = "") -> str:
        """A parameter's value; the last if there are several."""
        return parameter(name, default)

    def all(self, name: str) -> list[str]:
        """All values of a parameter."""
        return params().get(name, [])

    @property
    def window(self) -> tuple[int, int] | None:
        """What part of the recording is shown, ns on its clock; None for the whole.

        Raises:
            UsageError: the parameter is no window.
        """
        said = self.get("window")
        return parse_window(said, self.extent) if said else None

    @property
    def options(self) -> Options:
        """Window, ranges, devices and ranks as the analyses take them."""
        ranks = tuple(int(rank) for rank in self.all("rank") if rank.isdecimal())
        return Options(self.window, tuple(self.all("range")), tuple(self.all("device")), ranks)

    def command(self, verb: str, *more: str) -> str:
        """The command line that prints the same figures."""
        return command(verb, self.paths, *self.flags("window", "range", "device", "rank"), *more)

    def flags(self, *names: str) -> list[str]:
        """Parameters as options of the command line."""
        return [part for name in names for value in self.all(name) for part in (f"--{name}", value)]

    def link(self, page: str, label: str, **changes: str | Sequence[str] | None) -> None:
        """A link to a page, with some parameters changed."""
        st.page_link(self.pages[page], label=label, query_params=changed(changes))

    def go(self, page: str, **changes: str | Sequence[str] | None) -> None:
        """Show a page now, with some parameters changed."""
        st.switch_page(self.pages[page], query_params=changed(changes))


def window_text(low: int, high: int) -> str:
    """A window as a parameter, and as `--window` takes it."""
    return f"{low}:{high}"


# ---- widgets whose value is a parameter


def _taken(name: str) -> None:
    value = st.session_state[f"w-{name}"]
    change(**{name: None if value is None else value if isinstance(value, (str, list)) else f"{value:g}"})


def _bound(name: str, value: Any) -> dict[str, Any]:
    """Arguments of a widget that shows a parameter and changes it."""
    st.session_state[f"w-{name}"] = value
    return {"key": f"w-{name}", "on_change": _taken, "args": (name,)}


def text_box(state: State, name: str, label: str, **more: Any) -> str:
    """A line of text that is a parameter."""
    return st.text_input(label, **_bound(name, state.get(name)), **more) or ""


def number(state: State, name: str, label: str, **more: Any) -> float:
    """A number from 0 on that is a parameter."""
    said = state.get(name, "0")
    value = float(said) if said.replace(".", "", 1).isdecimal() else 0.0
    return float(st.number_input(label, min_value=0.0, **_bound(name, value), **more))


def one_of(state: State, name: str, label: str, options: Sequence[str], **more: Any) -> str:
    """One of some options, the first by default. Its names may come from a trace: a list shows them as text."""
    value = state.get(name)
    return str(st.selectbox(label, options, **_bound(name, value if value in options else options[0]), **more))


def some_of(state: State, name: str, label: str, options: Sequence[str], **more: Any) -> list[str]:
    """Any of some options, none by default."""
    chosen = [value for value in state.all(name) if value in options]
    return st.multiselect(label, options, **_bound(name, chosen), **more)


def segments(state: State, name: str, label: str, options: Sequence[str], **more: Any) -> str:
    """One of a few options side by side, the first by default; they are our own words, for they are Markdown."""
    value = state.get(name)
    bound = _bound(name, value if value in options else options[0])
    return str(st.segmented_control(label, options, required=True, **bound, **more))
