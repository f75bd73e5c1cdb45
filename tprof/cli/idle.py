"""`tprof idle`: why each device was idle."""

from __future__ import annotations

from tprof.cli import output, question
from tprof.cli.options import Ask
from tprof.errors import DONE


def idle(ask: Ask) -> int:
    """Why each device was idle: by phase, and the longest gaps with what ended them."""
    ask = question.settled(ask)
    output.check(ask)
    trace = question.load_trace(ask)
    result = trace.idle(question.options(ask, trace))
    output.write(ask, result)
    if not trace.attribution.events:
        raise question.cannot_judge(ask, question.NO_DEVICE)
    return DONE
