"""`tprof warmup`: run a command whose `tprof.ready()` applies a plan first."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Annotated

import typer

from tprof.cli.record import no_program
from tprof.errors import UsageError
from tprof.prepare.at_ready import VARIABLE
from tprof.record import command

File = Annotated[Path, typer.Argument(metavar="PLAN", help="Of `tprof plan`.")]
Command = Annotated[
    list[str], typer.Argument(metavar="COMMAND", help="What to run; it calls `tprof.ready()` when it has started.")
]


def warmup(file: File, run: Command) -> int:
    """Run a command; where it calls `tprof.ready()`, the plan is applied first.

    The same as TPROF_PLAN=PLAN in its environment. What is skipped is said on its stderr; exit code and output are the
    command's own. Programs that must trace compiled models call `tprof.warmup(plan, call=...)` themselves.
    """
    from tprof.prepare import plan_file  # noqa: PLC0415  keeps `--help` quick

    plan_file.load(file)
    words = run[run[0] == "--" :]  # what stands behind the first argument is not read as options
    if not words:
        raise UsageError("no command to run; see `tprof warmup --help`")
    if shutil.which(words[0]) is None:
        raise no_program(words[0])
    return command.run(words, {**os.environ, VARIABLE: str(file.resolve())})
