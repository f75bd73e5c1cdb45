"""`tprof requests`: the budget of every request."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from tprof.cli import output, question
from tprof.cli.options import Ask
from tprof.cli.reference import Reference, reference_latency
from tprof.errors import DONE
from tprof.present.names import short

if TYPE_CHECKING:
    from tprof.facade import Trace

Job = Annotated[bool, typer.Option("--job", help="Only what share of the whole job its cold start is.")]
_SHOWN = 8  # names of ranges in the hint


def requests(ask: Ask, reference: Reference = None, job: Job = False) -> int:
    """Where the time of every request went, what of it was cold start, and which shapes caused that."""
    ask = question.settled(ask)
    output.check(ask)
    compared = reference_latency(ask, reference)
    trace = question.load_trace(ask)
    result = trace.requests(question.options(ask, trace), compared)
    whole_job = replace(result, tables={"job": result.tables["job"]})
    output.write(ask, whole_job if job else output.page(ask, result, "job"))
    if not result.payload["requests"] and not job:
        raise question.cannot_judge(ask, _hint(ask, trace))
    return DONE


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
