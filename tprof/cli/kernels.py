"""`tprof kernels`: what ran on the devices, and why."""

from __future__ import annotations

from tprof.cli import output, question
from tprof.cli.options import Ask
from tprof.errors import DONE


def kernels(ask: Ask) -> int:
    """What ran on the devices, by kernel and purpose: work, or benchmark repetitions of autotuning."""
    ask = question.settled(ask)
    output.check(ask)
    trace = question.load_trace(ask)
    output.write(ask, trace.kernels(question.options(ask, trace)))
    if not trace.attribution.events:
        raise question.cannot_judge(ask, question.NO_DEVICE)
    return DONE
