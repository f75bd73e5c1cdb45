"""`--reference`: the steady latency that requests are compared with, as a time or from another recording."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from tprof.cli import question
from tprof.cli.options import Ask
from tprof.cli.window import duration

Reference = Annotated[
    str | None,
    typer.Option(
        metavar="TIME|SOURCE",
        help="Compare the steady latency with a time (`12ms`) or with another recording of the same requests.",
    ),
]


def reference_latency(ask: Ask, reference: str | None) -> dict[str, int] | None:
    """Steady latency by request name, ns; a time stands for all requests.

    Raises:
        SourceError: it is no time, and no recording that can be read.
        TprofError: it is a recording without a warm request.
    """
    if reference is None:
        return None
    if (ns := duration(reference)) is not None:
        return {"all": ns}
    other = replace(ask, sources=[reference], window=None)
    trace = question.load_trace(other)
    rows = trace.requests(question.options(other, trace)).payload["first_steady"]
    found = {row["name"]: row["steady_ns"] for row in rows if row["steady_ns"]}
    if not found:
        raise question.cannot_judge(other, "no request without cold start after the first, so no reference")
    return found
