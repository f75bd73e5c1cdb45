"""`tprof requests`: the budget of every request."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from tprof.cli import output, question
from tprof.cli.options import Ask
from tprof.cli.window import duration
from tprof.present.names import short

if TYPE_CHECKING:
    from tprof.facade import Trace

Reference = Annotated[
    str | None,
    typer.Option(
        metavar="TIME|SOURCE",
        help="Compare the steady latency with a time (`12ms`) or with another recording of the same requests.",
    ),
]
Job = Annotated[bool, typer.Option("--job", help="Only what share of the whole job its cold start is.")]
_SHOWN = 8  # names of ranges in the hint


def requests(ask: Ask, reference: Reference = None, job: Job = False) -> int:
    """Where the time of every request went, what of it was cold start, and which shapes caused that."""
    ask = question.settled(ask)
    compared = _reference(ask, reference)
    trace = question.load_trace(ask)
    result = trace.requests(question.options(ask, trace), compared)
    whole_job = replace(result, tables={"job": result.tables["job"]})
    found = job or result.payload["requests"]
    shown = whole_job if job else output.page(ask, result, "job")
    return question.answer(ask, shown, (found, "" if found else _hint(ask, trace)))


def _hint(ask: Ask, trace: Trace) -> str:
    """Which ranges there are, so that one can be named."""
    wanted = ", ".join(ask.ranges) or "request*, ProfilerStep*"
    names = trace.range_names()
    where = f" in {ask.window}" if ask.window else ""
    if not names:
        return f"no range matches {wanted}{where}, and the trace holds none; mark requests with NVTX or record_function"
    shown = ", ".join(short(name, 40) for name in names[:_SHOWN])
    more = " …" if len(names) > _SHOWN else ""
    return f"no range matches {wanted}{where}; name one with --range: {shown}{more}"


def _reference(ask: Ask, reference: str | None) -> dict[str, int] | None:
    """What requests are compared with: steady latency by request name, ns; a time stands for all requests.

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
