"""The page Timeline: drag to zoom, click a bar for details; the address holds window, filters and what was clicked."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, Final

import streamlit as st

from tprof.align.cut import cut, within
from tprof.analyze.lanes import KINDS, PARTS, RANGE
from tprof.analyze.result import Result
from tprof.analyze.stretches import device_phases, thread_phases
from tprof.analyze.zoom import BARS, Wanted, details, zoom
from tprof.cli.window import parse_window
from tprof.present import perfetto, units, views
from tprof.present.timeline import dragged, pick, timeline
from tprof.present.words import part_label
from tprof_app import panels
from tprof_app.state import change, one_of, segments, some_of, text_box, window_text

if TYPE_CHECKING:
    from tprof.analyze.zoom import Zoom
    from tprof_app.recording import Recording
    from tprof_app.state import State

_SHORTEST: Final = {"": "any", **{str(10**n): f"{units.duration(10**n)} or longer" for n in range(3, 10)}}
_KINDS: Final = {
    "device": "where a device's time went", "stream": "streams", "thread": "threads by phase", "ranges": "ranges",
}  # fmt: skip
_WORDS: Final = tuple(dict.fromkeys(part for part, _ in PARTS if part != RANGE))
_CRUMBS: Final = 6
_MOUSE: Final = ("Drag to zoom", "Click for details")
_FILTERS: Final = ("lanes", "phase", "min", "kernel", "shape", "range")


def page(recording: Recording, state: State) -> None:
    """The whole page is one fragment: a zoom does not draw the rest again.

    Raises:
        UsageError: the address has a window that is none.
    """
    for text in (state.get("window"), *state.all("crumb")):
        if text:
            parse_window(text, recording.extent)
    _timeline(recording, state)


@st.fragment
def _timeline(recording: Recording, state: State) -> None:
    with st.spinner("Laying out the lanes", show_time=True):
        lanes = recording.lanes
    wanted = _filters(state)
    window = state.window or recording.extent
    _crumbs(state, recording.extent)
    view = zoom(recording.trace, lanes, window, wanted)
    _figure(recording, state, view)
    _picked(recording, state)
    _take_away(recording, state, window)


def _filters(state: State) -> Wanted:
    used = any(state.get(name) for name in _FILTERS)
    with st.expander("Filters", icon=":material/filter_alt:", expanded=used):
        cells = [cell for _ in range(2) for cell in st.columns(3)]
        with cells[0]:
            kinds = some_of(state, "lanes", "Lanes", KINDS, format_func=_KINDS.__getitem__, placeholder="All")
        with cells[1]:
            parts = some_of(state, "phase", "Phases and purposes", _WORDS, format_func=part_label, placeholder="All")
        with cells[2]:
            least = one_of(state, "min", "Duration", list(_SHORTEST), format_func=_SHORTEST.__getitem__)
        with cells[3]:
            kernel = text_box(state, "kernel", "Kernel", placeholder="*attention*", help="A glob; of streams.")
        with cells[4]:
            shape = text_box(state, "shape", "Shape", placeholder="4096", help="A part of the shape; of streams.")
        with cells[5]:
            said = "A glob: these ranges, and what was launched in them."
            ranges = text_box(state, "range", "Range", placeholder="request*", help=said)
        st.button("Clear filters", on_click=_clear, type="tertiary", icon=":material/filter_alt_off:")
    return Wanted(tuple(kinds), tuple(parts), kernel, shape, (ranges,) if ranges else (), int(least or 0))


def _clear() -> None:
    change(**dict.fromkeys(_FILTERS))


def _crumbs(state: State, extent: tuple[int, int]) -> None:
    """The way back: all, every window on the way here; and steps out and aside."""
    crumbs, (low, high) = state.all("crumb"), state.window or extent
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if state.window:
            st.button("All", on_click=_to, args=(None, []), type="tertiary", icon=":material/zoom_out_map:")
        for i, crumb in enumerate(crumbs):
            start, end = parse_window(crumb, extent)
            said = f"{units.duration(end - start)} ›"
            st.button(said, key=f"crumb-{i}", on_click=_to, args=(crumb, crumbs[:i]), type="tertiary")
        st.markdown(f"**{units.duration(high - low)}** from {(low - extent[0]) / 1e6:,.3f} ms")
        for label, icon, to in _steps((low, high), extent):
            text, same = window_text(*to) if to != extent else None, to == (low, high)
            st.button(label, on_click=_to, args=(text, crumbs), type="tertiary", icon=icon, disabled=same)
        segments(state, "mouse", "Mouse", _MOUSE, label_visibility="collapsed")


def _steps(window: tuple[int, int], extent: tuple[int, int]) -> list[tuple[str, str, tuple[int, int]]]:
    """Twice the window, and half a window to each side, as far as there is anything."""
    low, high = window
    step = max((high - low) // 2, 1)
    back, on = min(step, low - extent[0]), min(step, extent[1] - high)
    return [
        ("Zoom out", ":material/zoom_out:", (low - back, high + on)),
        ("Earlier", ":material/chevron_left:", (low - back, high - back)),
        ("Later", ":material/chevron_right:", (low + on, high + on)),
    ]


def _to(window: str | None, crumbs: list[str]) -> None:
    change(window=window, crumb=crumbs if window else None)


def _figure(recording: Recording, state: State, view: Zoom) -> None:
    if not view.lanes:
        said = "Nothing of this window passes the filters. Clear them, or show all of the recording."
        st.info(said, icon=":material/filter_alt_off:")
        return
    picking = state.get("mouse") == _MOUSE[1]
    figure = timeline(view, recording.trace, recording.extent[0], or_load=recording.or_load, picking=picking)
    lanes = f"{len(view.lanes)} lanes" + (f" ({view.hidden} more are hidden: filter)" if view.hidden else "")
    few = f"a strip shows the shares of each pixel, and the {len(view.bars.lane)} longest are bars"
    drawn = "each is a bar" if view.intervals <= BARS else few
    st.caption(f"{units.count(view.intervals)} intervals in {lanes}; {drawn}. Hatched: inferred.")
    key = f"timeline-{view.window}-{view.intervals}-{picking}"  # another chart for another view: nothing is selected
    panels.chart(
        figure, f"Timeline of {units.count(view.intervals)} intervals in {lanes}", key,
        on_select=lambda: _selected(key, state, view), selection_mode=("points", "box"),
    )  # fmt: skip


def _selected(key: str, state: State, view: Zoom) -> None:
    """A drag zooms, a click picks."""
    selection: Any = st.session_state[key].selection
    if selection.box:
        here = state.get("window")
        crumbs = [*state.all("crumb"), *([here] if here else [])][-_CRUMBS:]
        to = dragged(view, selection.box[0]["x"], state.extent[0])
        change(window=window_text(*to), crumb=crumbs)
    elif selection.points:
        said = selection.points[0].get("customdata")
        change(pick=str(said[0]) if said else None)


def _picked(recording: Recording, state: State) -> None:
    """What is known of the bar that was clicked."""
    lanes = {(lane.kind, lane.of): lane for lane in reversed(recording.lanes)}  # of ranges, the outermost
    said = pick(state.get("pick"))
    if said is None or said[:2] not in lanes:
        return
    kind, of, start, row = said
    found = details(recording.trace, (kind, of), start, row, recording.extent[0])
    panels.heading("Details", f"{lanes[said[:2]].group}, {lanes[said[:2]].label}", "")
    for name, rows in found.items():
        if rows:
            result = Result("details", {name: rows}, {})
            st.caption(views.view(result, name).heading)
            panels.table(result, name, key=f"details-{name}")
    with st.container(horizontal=True):
        if kernel := next((event["name"] for event in found["event"] if kind == "stream"), ""):
            state.link("Kernels", "This kernel", kernel=kernel)
        st.button("Close", on_click=change, kwargs={"pick": None}, type="tertiary", icon=":material/close:")


def _take_away(recording: Recording, state: State, window: tuple[int, int]) -> None:
    """This window for other programs."""
    with st.popover("Open elsewhere", icon=":material/open_in_new:", type="tertiary"):
        st.download_button(
            "This window for Perfetto", lambda: _perfetto(recording, window), "tprof-window.json", "application/json",
            on_click="ignore", type="tertiary",
        )  # fmt: skip
        st.caption("Open the file at ui.perfetto.dev or in chrome://tracing: both read it in the browser.")
        st.code(state.command("export", "-o", "window.json.gz"), language="bash")


def _perfetto(recording: Recording, window: tuple[int, int]) -> bytes:
    of = recording.trace.attribution
    phases = {"thread_phases": within(thread_phases(of), window), "device_phases": within(device_phases(of), window)}
    out = io.BytesIO()
    perfetto.write(cut(recording.trace, window), phases, out)
    return out.getvalue()
