"""What a person sees of what was read: sources, processes, tables; and of one event of the timeline. See `views`."""

from __future__ import annotations

from typing import Final

from tprof.present.columns import Column, View

_EVENT: Final = (
    Column("name", "name"),
    Column("kind", "kind"),
    Column("total_ns", "duration"),
    Column("at_ns", "at"),
    Column("purpose", "purpose", sparse=True),
    Column("path", "path", sparse=True),
    Column("phase", "phase", sparse=True),
    Column("kernel", "kernel", sparse=True),
    Column("stream", "stream"),
    Column("grid", "grid", sparse=True),
    Column("block", "block", sparse=True),
    Column("registers", "registers", sparse=True),
    Column("shared_bytes", "shared memory", sparse=True),
    Column("bytes", "bytes", sparse=True),
    Column("shape_key", "shape", sparse=True),
    Column("tid", "thread"),
    Column("domain", "domain", sparse=True),
    Column("purpose_basis", "basis", sparse=True),
    Column("basis", "basis", sparse=True),
    Column("attrs", "what the producer said", sparse=True),
)

DATA_VIEWS: Final[dict[tuple[str, str], View]] = {
    ("data", "sources"): View(
        "Sources",
        "Lost: rows that could not be read; the warnings say why. Skipped: rows that are no events. The clock is that "
        "of the recorder, or of the only source; its error bounds how far the times of two sources may be apart.",
        (
            Column("path", "file"),
            Column("format", "format"),
            Column("producer", "producer"),
            Column("version", "version"),
            Column("rows_read", "rows read"),
            Column("rows_dropped", "rows lost"),
            Column("clock_offset_ns", "clock moved by", sparse=True),
            Column("clock_error_ns", "clock error", sparse=True),
            Column("rows_skipped", "skipped", sparse=True),
        ),
    ),
    ("data", "processes"): View(
        "Processes",
        "As far as the recording names them.",
        (
            Column("pid", "process"),
            Column("name", "program", sparse=True),
            Column("rank", "rank", sparse=True),
            Column("parent_pid", "started by", sparse=True),
            Column("versions", "versions", sparse=True),
            Column("environment", "settings", sparse=True),
        ),
    ),
    ("data", "tables"): View(
        "Tables in memory",
        "A large source is mapped from the cache of traces: what is not looked at takes no memory.",
        (Column("table", "table"), Column("rows", "rows"), Column("arrow_bytes", "size")),
    ),
    ("details", "event"): View("What was clicked", "At: from the first event of the trace.", _EVENT),
    ("details", "launch"): View("The call that launched it", "", _EVENT),
    ("details", "stack"): View("Open on the thread at that moment, outermost first", "", _EVENT),
}
