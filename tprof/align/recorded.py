"""Cold events that a trace records itself: load calls, graph capture, frames of a compiler, mapped ranges, ours."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Final

import numpy as np

from tprof.align.calls import CAPTURE, INIT, LIBRARY, LOAD, call_classes, is_kind
from tprof.align.ranges import by_thread
from tprof.events import PHASES, Phase
from tprof.intervals import NONE
from tprof.model import Trace, codes, ints

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

_BY_CALL: Final[dict[int, Phase]] = {LOAD: "module_load", LIBRARY: "init", INIT: "init"}
# Frames that torch.profiler records with `with_stack`: `path(line): function`.
_BY_FRAME: Final[tuple[tuple[re.Pattern[str], Phase], ...]] = (
    (re.compile(r"triton/compiler/compiler\.py\(\d+\): compile$"), "compile"),
    (re.compile(r"triton/backends/\w+/compiler\.py\(\d+\): make_"), "compile"),
    (re.compile(r"triton/runtime/build\.py\(\d+\): _build"), "launcher_build"),
    (re.compile(r"triton/runtime/autotuner\.py\(\d+\): (_bench|benchmark)$"), "autotune"),
    (re.compile(r"torch/_dynamo/convert_frame\.py\(\d+\): _compile"), "graph_compile"),
)


@dataclass(frozen=True)
class ColdEvents:
    """Recorded cold events: arrays of shape (events,).

    `phase` indexes PHASES, `name` is what says so, `kernel` is what tprof's recorder says it was for (None: not said).
    """

    start: np.ndarray
    end: np.ndarray
    thread: np.ndarray
    phase: np.ndarray
    name: np.ndarray
    kernel: np.ndarray


def cold_events(trace: Trace, phases: Mapping[str, str]) -> ColdEvents:
    """Every recorded cold event, and every user range mapped to a phase.

    Args:
        trace: as read.
        phases: glob over range names -> phase; the user's own word, so it counts as recorded.
    """
    host = trace.host
    code, names = codes(host, "name")
    phase = np.full(host.num_rows, NONE)
    calls = call_classes(host)
    for kind, of_kind in _BY_CALL.items():
        phase[calls == kind] = PHASES.index(of_kind)
    _by_name(phase, code, names, is_kind(host, "python"), _frame_phase)
    _by_name(phase, code, names, is_kind(host, "range", "startend"), lambda n: mapped(n, phases))
    told, phases_told = codes(host, "phase")
    by_recorder = np.flatnonzero(is_kind(host, "cold"))
    phase[by_recorder] = np.array([PHASES.index(p) for p in phases_told] or [NONE])[told[by_recorder]]
    rows = np.flatnonzero(phase != NONE)
    start, end, thread = (ints(host, c) for c in ("start_ns", "end_ns", "thread"))
    begin, finish, on = _captures(
        start, end, thread, calls, np.array([names[c] for c in code[calls == CAPTURE]], object)
    )
    text = np.array(names, object)[code[rows]] if len(rows) else np.zeros(0, object)
    return ColdEvents(
        np.concatenate([start[rows], begin]),
        np.concatenate([end[rows], finish]),
        np.concatenate([thread[rows], on]),
        np.concatenate([phase[rows], np.full(len(begin), PHASES.index("graph_capture"))]),
        np.concatenate([text, np.full(len(begin), "stream capture", object)]),
        np.concatenate([_label(host, "kernel", rows), np.full(len(begin), None, object)]),
    )


def _label(host: pa.Table, column: str, rows: np.ndarray) -> np.ndarray:
    """Values of a label column at some rows, None for a null."""
    code, values = codes(host, column)
    return np.array([*values, None], object)[code[rows]] if len(rows) else np.zeros(0, object)


def _by_name(
    phase: np.ndarray, code: np.ndarray, names: list[str], rows: np.ndarray, rule: Callable[[str], str | None]
) -> None:
    """Set the phase of the rows in question by a rule on their name."""
    if not rows.any():
        return
    used = np.unique(code[rows])
    by_code = np.full(len(names), NONE)
    for c in used.tolist():
        found = rule(names[c])
        by_code[c] = NONE if found is None else PHASES.index(found)
    phase[rows] = by_code[code[rows]]


def _frame_phase(name: str) -> Phase | None:
    return next((phase for pattern, phase in _BY_FRAME if pattern.search(name)), None)


def mapped(name: str, phases: Mapping[str, str]) -> str | None:
    """The phase that the user mapped a range name to, if any; a purpose (`warmup`, …) is no phase."""
    return next((to for glob, to in phases.items() if to in PHASES and fnmatchcase(name, glob)), None)


def _captures(
    start: np.ndarray, end: np.ndarray, thread: np.ndarray, calls: np.ndarray, names: np.ndarray
) -> tuple[np.ndarray, ...]:
    """From each begin of a stream capture to its instantiation, or its end where none follows; per thread."""
    rows = np.flatnonzero(calls == CAPTURE)
    found: list[tuple[int, int, int]] = []
    for on, at in by_thread(thread[rows]):
        begun: int | None = None
        order = at[np.argsort(start[rows[at]], kind="stable")]
        for i in order.tolist():
            if "Begin" in names[i]:
                begun = int(start[rows[i]])
            elif begun is not None:
                found.append((begun, int(end[rows[i]]), on))
                begun = None if "Instantiate" in names[i] else begun
    columns = np.array(found, np.int64).reshape(-1, 3)
    return columns[:, 0], columns[:, 1], columns[:, 2]
