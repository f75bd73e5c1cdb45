"""`tprof summary`: where the time went, on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tprof.cli import output, question
from tprof.cli.options import Ask
from tprof.cli.reports import write_report
from tprof.errors import DONE

Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write a self-contained HTML report.")]


def summary(ask: Ask, html: Html = None) -> int:
    """Where the time went: wall clock of each device, cold start, requests, what to look at first."""
    ask = question.settled(ask)
    output.check(ask, html)
    trace = question.load_trace(ask)
    asked = question.options(ask, trace)
    if html is not None:
        write_report({"": trace}, html, asked)
    output.write(ask, trace.summary(asked))
    if not trace.host.num_rows and not trace.device.num_rows:
        raise question.cannot_judge(ask, "the trace holds no host and no device events; record it with both")
    return DONE
