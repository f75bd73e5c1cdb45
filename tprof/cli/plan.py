"""`tprof plan`: which kernels, winners and buckets are worth preparing, as a file for `tprof.warmup`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tprof.cli import output
from tprof.cli.options import Ask, Force, Format
from tprof.cli.settings import load_settings
from tprof.errors import CANNOT_JUDGE, DONE

if TYPE_CHECKING:
    from tprof.analyze import Result
    from tprof.prepare.plan_file import Plan

Runs = Annotated[
    list[Path], typer.Argument(metavar="RUN...", help="Recordings of tprof: run directories of typical traffic.")
]
File = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the plan here; default: to stdout.")
]
Seconds = Annotated[
    float | None,
    typer.Option(metavar="S", min=0, help="Compile time that a warm-up may take, one kernel after another."),
]
Most = Annotated[int | None, typer.Option(metavar="N", min=1, help="Compiled kernels that a plan may hold.")]

LEFT_OUT = {
    "leave": "what was cold about them took less than 10 ms",
    "generic": "called too rarely: give them a conservative configuration",
    "only-timed": "candidates of an autotuner that no call used",
    "over-budget": "no room under --max-seconds or --max-kernels",
    "prepared": "recorded with a plan, so no search is seen: add the recording that the plan was made from",
    "not-recorded": "how to compile them is not recorded; record with this version of tprof",
}


def plan(
    runs: Runs, file: File = None, max_seconds: Seconds = None, max_kernels: Most = None, force: Force = False
) -> int:
    """Say what is worth compiling, tuning and running before a service is ready, and write it as a plan.

    Hot: called at least twice, and 1 % of its function's calls or 100 calls; the most called come first.
    `tprof.warmup("plan.json")` applies the plan. Exit code 4 if the recordings hold nothing to prepare.
    """
    from tprof.prepare.plan import Limits, make  # noqa: PLC0415  keeps `--help` quick

    ask = Ask(format=Format.TABLE, output=file, force=force)
    output.check(ask)
    made = make(runs, Limits(max_seconds, max_kernels, load_settings(Path.cwd()).buckets))
    if file is None:
        sys.stdout.write(made.text())
    else:
        file.write_text(made.text(), encoding="utf-8")
        output.write(Ask(format=Format.TABLE), _result(made))
    return DONE if made.kernels or made.calls else CANNOT_JUDGE


def _result(made: Plan) -> Result:
    from tprof.analyze import Result  # noqa: PLC0415  as above

    kernels = [
        {"kernel": k.function, "target": k.target, "triton": k.triton, "variants": len(k.specializations),
         "tunings": len(k.searches), "calls": sum(s.calls for s in k.specializations),
         "compile_ns": sum(s.cold_ns for s in k.specializations), "tuning_ns": sum(s.cold_ns for s in k.searches)}
        for k in made.kernels
    ]  # fmt: skip
    left = [{"count": n, "reason": LEFT_OUT[why]} for why, n in made.left_out.items()]
    calls = [{"name": c.name, "calls": c.calls} for c in made.calls] if made.graphs else []
    tables = {"kernels": kernels, "calls": calls, "left_out": left}
    return Result("plan", {name: rows for name, rows in tables.items() if rows}, {})
