"""`tprof kernels`: what ran on the devices, and why."""

from __future__ import annotations

from dataclasses import replace

from tprof.cli import output, question
from tprof.cli.options import Ask, Kernels
from tprof.errors import DONE


def kernels(ask: Ask, kernel: Kernels = None) -> int:
    """What ran on the devices, by kernel and purpose: work, or benchmark repetitions of autotuning.

    With `--kernel`, also its launch configurations and how long its executions took.
    """
    ask = question.settled(ask)
    output.check(ask)
    trace = question.load_trace(ask)
    result = trace.kernels(replace(question.options(ask, trace), kernels=tuple(kernel or ())))
    output.write(ask, result)
    if not trace.attribution.events:
        raise question.cannot_judge(ask, question.NO_DEVICE)
    if kernel and not result.tables["kernels"]:
        raise question.cannot_judge(ask, f"no kernel is named {', '.join(kernel)}; `tprof kernels` lists what ran")
    return DONE
