"""`tprof cold`: what the cold start was made of."""

from __future__ import annotations

from dataclasses import replace

from tprof.cli import output, question
from tprof.cli.options import Ask, Kernels
from tprof.present.names import short

_NAMED, _NAME = 8, 40  # kernels in a hint, and characters of each
_NO_HOST = "the trace holds no host events, which is where a cold start shows; record the CPU too"
_EVERY = 1 << 31  # rows: of what concerns a kernel nothing is cut
_DETAIL = (("specializations", "first_uses"), ("tunings", "candidates"))  # what a page without the second still tells


def cold(ask: Ask, kernel: Kernels = None) -> int:
    """What was compiled, looked up, built, loaded and tuned, for whom, and why; and what start-up was made of."""
    ask, trace, options = question.asked(ask, kernels=kernel)
    result = trace.cold(options)
    if kernel:
        ask = replace(ask, top=ask.top or _EVERY)
    told = [detail for top, detail in _DETAIL if result.tables[top]] if ask.top is None else []
    empty = [name for name, rows in result.tables.items() if not rows and name != "phases"]
    known = sorted({name for name in trace.spans["kernel"].to_pylist() if name}) or ["none"]
    names = ", ".join(short(name, _NAME) for name in known[:_NAMED]) + (" …" if len(known) > _NAMED else "")
    none = f"nothing was cold for a kernel {', '.join(kernel or ())}; kernels that were: {names}"
    shown = output.page(ask, result, "waterfall", *told, *empty)
    return question.answer(ask, shown, (trace.host.num_rows, _NO_HOST), (not kernel or result.tables["kernels"], none))
