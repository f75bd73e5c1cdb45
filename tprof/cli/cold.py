"""`tprof cold`: what the cold start was made of."""

from __future__ import annotations

from dataclasses import replace

from tprof.cli import output, question
from tprof.cli.options import Ask, Kernels
from tprof.errors import DONE
from tprof.present.names import short

_NAMED, _NAME = 8, 40  # kernels in a hint, and characters of each
_EVERY = 1 << 31  # rows: of what concerns a kernel nothing is cut
_DETAIL = (("specializations", "first_uses"), ("tunings", "candidates"))  # what a page without the second still tells


def cold(ask: Ask, kernel: Kernels = None) -> int:
    """What was compiled, looked up, built, loaded and tuned, for whom, and why; and what start-up was made of."""
    ask = question.settled(ask)
    output.check(ask)
    trace = question.load_trace(ask)
    options = question.options(ask, trace)
    result = trace.cold(replace(options, kernels=tuple(kernel or ())))
    if kernel:
        ask = replace(ask, top=ask.top or _EVERY)
    told = [detail for top, detail in _DETAIL if result.tables[top]] if ask.top is None else []
    empty = [name for name, rows in result.tables.items() if not rows and name != "phases"]
    output.write(ask, output.page(ask, result, "waterfall", *told, *empty))
    if not trace.host.num_rows:
        raise question.cannot_judge(
            ask, "the trace holds no host events, which is where a cold start shows; record the CPU too"
        )
    if kernel and not result.tables["kernels"]:
        known = sorted({name for name in trace.spans["kernel"].to_pylist() if name}) or ["none"]
        names = ", ".join(short(name, _NAME) for name in known[:_NAMED]) + (" …" if len(known) > _NAMED else "")
        raise question.cannot_judge(
            ask, f"nothing was cold for a kernel {', '.join(kernel)}; kernels that were: {names}"
        )
    return DONE
