"""The page Compare: what changed from another recording, or batch, to this one; the result of `tprof diff`."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import streamlit as st

from tprof.analyze import Options
from tprof.analyze.diff import diff
from tprof.present import figures_compare
from tprof_app import batches, sources
from tprof_app.batches import Batch
from tprof_app.panels import panel, warnings
from tprof_app.recording import opened
from tprof_app.state import change, one_of
from tprof_app.text import command

if TYPE_CHECKING:
    from tprof.analyze import Result
    from tprof_app.recording import Recording
    from tprof_app.sources import Choice
    from tprof_app.state import State

_NAMES: Final = {
    "sources": ("trace", "figure"), "figures": ("figure",), "phases": ("part",), "cold_start": ("kernel", "phase"),
    "kernels": ("kernel", "shape"), "requests": ("name", "occurrence"),
}  # fmt: skip
# Of the comparison; what each recording lacks is told of it alone.
_SAID: Final = ("not-compared", "noise-unknown", "kinds-not-compared", "unpaired-sources")
_SAME: Final = "Nothing of it differs, or one of the two sides does not hold it."


def page(recording: Recording | Batch, state: State) -> None:
    """Pick the other recording, and see what changed; a batch is compared with a batch."""
    here, served = state.get("source"), state.served
    like = [choice for choice in sources.offered(served) if choice.batch == isinstance(recording, Batch)]
    offered = sorted(like, key=lambda choice: len(choice.paths) > 1)  # one is compared with one
    labels = [choice.label for choice in offered if choice.label != here]
    other = state.get("other")
    labels += [other] if other and other not in labels else []
    if not labels:
        what = "batch" if isinstance(recording, Batch) else "recording"
        st.info(f"There is no other {what} to compare with. Start the app with two: `tprof app BEFORE AFTER`.")
        return
    before = sources.chosen(one_of(state, "other", "Before", labels), served)
    sides = {"source": before.label, "other": here}
    st.button("Swap the sides", on_click=change, kwargs=sides, icon=":material/swap_horiz:", type="tertiary")
    if len(before.paths) > 1 or len(state.paths) > 1:
        st.info("One recording is compared with one. Open a single one at the left, and pick a single one here.")
        return
    if state.window:
        st.caption("Whole recordings are compared; the window does not count here.")
    _changed(recording, before, state)


def _changed(recording: Recording | Batch, before: Choice, state: State) -> None:
    if isinstance(recording, Batch):
        result = batches.changes(batches.opened(*before.paths), recording)
    else:
        options = Options(ranges=state.options.ranges, devices=state.options.devices, ranks=state.options.ranks)
        result = _compared(opened(before.paths, before.label), recording, options)
    paths = [sources.without_folder(path, state.served) for path in before.paths]
    line = command("diff", [*paths, *state.paths], *state.flags("range", "device", "rank"))
    warnings(replace(result, notes=tuple(note for note in result.notes if note.code in _SAID)))
    for name, keys in ((name, keys) for name, keys in _NAMES.items() if name in result.tables):
        rows = result.tables[name]
        figure = figures_compare.changes(rows, keys) if rows else None
        alt = f"What grew and what shrank: {name.replace('_', ' ')}"
        panel(result, name, line, figure=figure, alt=alt, empty=_SAME)
    if "changes" in result.tables:
        panel(result, "changes", line, empty=_SAME)


@lru_cache(maxsize=2)
def _compared(before: Recording, after: Recording, options: Options) -> Result:
    return diff([before.trace.attribution], [after.trace.attribution], options)
