"""The HTML report of one or more traces, written to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tprof import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tprof.analyze import Options
    from tprof.facade import Trace


def write_report(traces: Mapping[str, Trace], path: Path, options: Options | None = None) -> None:
    """Write a report with one chapter per trace.

    Args:
        traces: by the chapter's title; an empty title shows none.
        path: where to; overwritten.
        options: of the analyses.
    """
    from tprof.present.html import Chapter, report  # noqa: PLC0415  keeps `--help` quick

    chapters = [
        Chapter(title, trace.summary(options), trace.idle(options), trace.cold(options), trace.kernels(options))
        for title, trace in traces.items()
    ]
    path.write_text(report(chapters, __version__), encoding="utf-8", errors="backslashreplace")
