"""What a person sees of comparisons, gates, what was read, and of this installation; see `columns.table`."""

from __future__ import annotations

from typing import Final

from tprof.present.columns import View, table

_CHANGED: Final = "before_ns | after_ns | change_ns | change_share 2: of before | verdict 1 | band_ns 3?: noise band"
_CHECKS: Final = "item: what | state:  | value: found | advice 1?: note"
_EVENT: Final = (
    "name | kind | total_ns: duration | at_ns | purpose ? | path ? | phase ? | kernel ? | stream | grid ? | block ? | "
    "registers ? | shared_bytes ?: shared memory | bytes ? | shape_key ?: shape | tid: thread | domain ? | "
    "purpose_basis ?: basis | basis ? | attrs ?: what the producer said"
)

DATA_VIEWS: Final[dict[tuple[str, str], View]] = {
    ("diff", "changes"): table(
        "What changed in kind",
        "change | name: of | before | after | basis 2",
        "Kernels per call of an operator or range, by path; configs, variants, and what was compiled when.",
    ),
    ("diff", "sources"): table(
        "Recordings that both batches have, by their names",
        f"trace | figure | {_CHANGED}",
        "How far repeats lie apart is not known; what changed by less than 1 % of the window is left out.",
    ),
    ("diff", "figures"): table(
        "Figures",
        f"figure | {_CHANGED}",
        "Medians over the repeats. What differs by no more than the noise band is left out.",
    ),
    ("diff", "phases"): table("Wall clock of the devices", f"part | {_CHANGED}"),
    ("diff", "kernels"): table(
        "Device work by kernel and shape",
        f"kernel | shape | {_CHANGED}",
        "Without the numbers that Inductor gives its kernels.",
    ),
    ("diff", "requests"): table("Requests, by name and occurrence", f"name: request | occurrence *: no. | {_CHANGED}"),
    ("diff", "cold_start"): table("Cold start by kernel and phase", f"kernel | phase | {_CHANGED}"),
    ("check", "gates"): table(
        "Gates",
        "gate | state | value | limit 1 | unit 2 | why ? | basis 3",
        "Tripped: the value is above the limit, or something else ran than was expected.",
        whole=True,
    ),
    ("data", "sources"): table(
        "Sources",
        "path: file | format | producer | version | rows_read | rows_dropped: rows lost | "
        "clock_offset_ns ?: clock moved by | clock_error_ns ? | rows_skipped ?: skipped",
        "Lost: rows that could not be read; the warnings say why. Skipped: rows that are no events. The clock is "
        "that of the recorder, or of the only source; its error bounds how far the times of two sources may be "
        "apart.",
    ),
    ("data", "processes"): table(
        "Processes",
        "pid: process | name ?: program | rank ? | parent_pid ?: started by | versions ? | environment ?: settings",
        "As far as the recording names them.",
    ),
    ("data", "tables"): table(
        "Tables in memory",
        "table | rows | arrow_bytes: size",
        "A large source is mapped from the cache of traces: what is not looked at takes no memory.",
    ),
    ("details", "event"): table("What was clicked", _EVENT, "At: from the first event of the trace."),
    ("details", "launch"): table("The call that launched it", _EVENT),
    ("details", "capture"): table("The call that the graph captured, of which it is a replay", _EVENT),
    ("details", "stack"): table("Open on the thread at that moment, outermost first", _EVENT),
    ("cache", "entries"): table(
        "Kept traces",
        "source | kept_bytes | used_utc 1: last used (UTC)",
        "Opened instead of the source as long as it has not changed. The least recently used go first.",
        whole=True,
    ),
    ("cache", "total"): table(
        "In all",
        "folder | kept_bytes | limit_bytes",
        "TPROF_CACHE_DIR names the folder, TPROF_CACHE_SIZE the limit.",
        whole=True,
    ),
    ("doctor", "checks"): table("This installation", _CHECKS, whole=True),
    ("doctor", "recording"): table("Recording on this machine", _CHECKS, whole=True),
    ("warnings", "warnings"): table("Warnings", "code | message: what | count: rows | source"),
}
