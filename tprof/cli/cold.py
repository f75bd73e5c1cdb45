"""`tprof cold`: what the cold start was made of."""

from __future__ import annotations

from tprof.cli import output, question
from tprof.cli.options import Ask
from tprof.errors import DONE


def cold(ask: Ask) -> int:
    """What was compiled, looked up, built, loaded and tuned: by phase, by kernel, by candidate."""
    ask = question.settled(ask)
    output.check(ask)
    trace = question.load_trace(ask)
    output.write(ask, trace.cold(question.options(ask, trace)))
    if not trace.host.num_rows:
        raise question.cannot_judge(
            ask, "the trace holds no host events, which is where a cold start shows; record the CPU too"
        )
    return DONE
