"""`tprof summary`, `idle`, `autotune`, `shapes` and `kernels`: one analysis each, written as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tprof.cli import output, question
from tprof.cli.options import Ask, Kernels

Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Also write a self-contained HTML report.")]


def summary(ask: Ask, html: Html = None) -> int:
    """Where the time went: wall clock of each device, cold start, requests, what to look at first."""
    ask, trace, options = question.asked(ask, html)
    if html is not None:
        output.write_report({"": trace}, html, options)
    events = trace.host.num_rows or trace.device.num_rows
    problem = "the trace holds no host and no device events; record it with both"
    return question.answer(ask, trace.summary(options), (events, problem))


def idle(ask: Ask) -> int:
    """Why each device was idle: by phase, and the longest gaps with what ended them."""
    ask, trace, options = question.asked(ask)
    return question.answer(ask, trace.idle(options), (trace.attribution.events, question.NO_DEVICE))


def autotune(ask: Ask, kernel: Kernels = None) -> int:
    """Searches of autotuners: candidates ranked, why each winner won, what the searches cost and saved."""
    ask, trace, options = question.asked(ask, kernels=kernel)
    result = trace.autotune(options)
    problem = "no search of an autotuner was recorded; record the first use of a shape"
    if kernel:
        problem = f"no search for a kernel named {', '.join(kernel)}; `tprof autotune` lists all searches"
    return question.answer(ask, result, (result.tables["tunings"], problem))


def shapes(ask: Ask, kernel: Kernels = None) -> int:
    """First and warm calls of each shape, misses by bucket, and a verdict: pin, warm, generic, leave.

    With `--kernel`, also the timeline of each shape.
    """
    ask, trace, options = question.asked(ask, kernels=kernel)
    result = trace.shapes(options)
    problem = "no call of a compiled kernel was recorded; record with `tprof record`, or the GPU with a profiler"
    if kernel:
        problem = f"no call of a kernel named {', '.join(kernel)}; `tprof kernels` lists what ran"
    shown = result if kernel else output.page(ask, result, "timeline")
    return question.answer(ask, shown, (result.payload["shapes"], problem))


def kernels(ask: Ask, kernel: Kernels = None) -> int:
    """What ran on the devices, by kernel and purpose: work, or benchmark repetitions of autotuning.

    With `--kernel`, also its launch configurations and how long its executions took.
    """
    ask, trace, options = question.asked(ask, kernels=kernel)
    result = trace.kernels(options)
    unnamed = f"no kernel is named {', '.join(kernel or ())}; `tprof kernels` lists what ran"
    needs = (trace.attribution.events, question.NO_DEVICE), (not kernel or result.tables["kernels"], unnamed)
    return question.answer(ask, result, *needs)
