"""`tprof advise`: which operators are worth a Triton kernel, and which are not."""

from __future__ import annotations

from typing import Annotated

import typer

from tprof.cli import question
from tprof.cli.options import Ask
from tprof.cli.window import duration
from tprof.errors import UsageError

JobLength = Annotated[
    str | None,
    typer.Option("--job", metavar="TIME", help="How long the whole job takes (`4h`, `90min`): its gain grows with it."),
]


def advise(ask: Ask, job: JobLength = None) -> int:
    """Judge every operator before a kernel exists: write it, fuse a chain, do not, or profile first; and why.

    Chains are small operators that follow each other. The questions at the end are those that no profile answers.
    """
    if job is not None and duration(job) is None:
        raise UsageError(f"--job {job!r} is no time; write a number with s, min or h")
    ask, trace, options = question.asked(ask)
    result = trace.advise(options, duration(job) if job else None)
    if not result.tables["operators"]:
        raise question.cannot_judge(ask, question.NO_DEVICE)
    return question.answer(ask, result)
