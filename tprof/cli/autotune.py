"""`tprof autotune`: why each winner of an autotuner won, and whether its search was worth the time."""

from __future__ import annotations

from tprof.cli import output, question
from tprof.cli.options import Ask
from tprof.errors import DONE


def autotune(ask: Ask) -> int:
    """Searches of autotuners: candidates ranked, why each winner won, what the searches cost and saved."""
    ask = question.settled(ask)
    output.check(ask)
    trace = question.load_trace(ask)
    result = trace.autotune(question.options(ask, trace))
    output.write(ask, result)
    if not result.tables["tunings"]:
        raise question.cannot_judge(ask, "no search of an autotuner was recorded; record the first use of a shape")
    return DONE
