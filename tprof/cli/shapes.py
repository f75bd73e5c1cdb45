"""`tprof shapes`: the life of every compiled kernel in each of its shapes."""

from __future__ import annotations

from dataclasses import replace

from tprof.cli import output, question
from tprof.cli.options import Ask, Kernels
from tprof.errors import DONE


def shapes(ask: Ask, kernel: Kernels = None) -> int:
    """First and warm calls of each shape, misses by bucket, and a verdict: pin, warm, generic, leave.

    With `--kernel`, also the timeline of each shape.
    """
    ask = question.settled(ask)
    output.check(ask)
    trace = question.load_trace(ask)
    result = trace.shapes(replace(question.options(ask, trace), kernels=tuple(kernel or ())))
    output.write(ask, result if kernel else output.page(ask, result, "timeline"))
    if not result.payload["shapes"]:
        raise question.cannot_judge(
            ask,
            f"no call of a kernel named {', '.join(kernel)}; `tprof kernels` lists what ran"
            if kernel
            else "no call of a compiled kernel was recorded; record with `tprof record`, or the GPU with a profiler",
        )
    return DONE
