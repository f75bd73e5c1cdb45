"""`tprof advise`: which operators are worth a Triton kernel, and which are not."""

from __future__ import annotations

from typing import Annotated

import typer

from tprof.cli import output, question
from tprof.cli.options import Ask
from tprof.cli.window import duration
from tprof.errors import DONE, UsageError

JobLength = Annotated[
    str | None,
    typer.Option("--job", metavar="TIME", help="How long the whole job takes (`4h`, `90min`): its gain grows with it."),
]


def advise(ask: Ask, job: JobLength = None) -> int:
    """Judge every operator before a kernel exists: write it, fuse a chain, do not, or profile first; and why.

    Chains are small operators that follow each other. The questions at the end are those that no profile answers.
    """
    ask = question.settled(ask)
    output.check(ask)
    if job is not None and duration(job) is None:
        raise UsageError(f"--job {job!r} is no time; write a number with s, min or h")
    trace = question.load_trace(ask)
    result = trace.advise(question.options(ask, trace), duration(job) if job else None)
    if not result.tables["operators"]:
        raise question.cannot_judge(ask, question.NO_DEVICE)
    output.write(ask, result)
    return DONE
