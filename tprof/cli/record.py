"""`tprof record`: run a command and record every Python process in it that uses Triton."""

from __future__ import annotations

import os
import shutil
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tprof.cli import last_words
from tprof.errors import TprofError, UsageError
from tprof.record import command, nsys, outdir, rundir, settings
from tprof.record.bootstrap import VARIABLE


class Profiler(StrEnum):
    """What torch.profiler records."""

    OFF = "off"
    CPU = "cpu"
    GPU = "gpu"


class Shapes(StrEnum):
    """When tensor shapes are read."""

    FIRST = "first"
    ALWAYS = "always"


Command = Annotated[
    list[str],
    typer.Argument(metavar="COMMAND", help="What to run: `python script.py`, `python -m pkg`, `vllm serve ...`."),
]
Run = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="RUN", help="Run directory to make; default: tprof-DATE-PID."),
]
Nsight = Annotated[bool, typer.Option("--nsys", help="Run it under Nsight Systems too, and export that to SQLite.")]
Torch = Annotated[
    Profiler, typer.Option(envvar="TPROF_TORCH_PROFILER", help="Run torch.profiler too: operators, or also the GPU.")
]
When = Annotated[
    Shapes,
    typer.Option(envvar="TPROF_SHAPES", help="Read tensor shapes once per grid and scalars, or at every launch."),
]
NoNvtx = Annotated[bool, typer.Option("--no-nvtx", help="Emit no NVTX ranges.")]
Replace = Annotated[bool, typer.Option("--force", help="Replace the run that RUN holds.")]


def record(
    run: Command,
    out: Run = None,
    nsight: Nsight = False,
    torch_profiler: Torch = Profiler.OFF,
    shapes: When = Shapes.FIRST,
    no_nvtx: NoNvtx = False,
    force: Replace = False,
) -> int:
    """Run a command and record every Python process in it that uses Triton; its output and exit code are its own."""
    if outer := os.environ.get(VARIABLE):
        last_words.say(
            f"this runs within `tprof record` already: the command is recorded into {outer}, the options are not used"
        )
        return command.run(run, os.environ)
    profiler = nsys.usable() if nsight else None
    if shutil.which(run[0]) is None:
        raise no_program(run[0])
    options = {"torch_profiler": str(torch_profiler), "shapes": str(shapes), **({"nvtx": "0"} if no_nvtx else {})}
    notes = []
    if profiler and torch_profiler is Profiler.GPU:
        options["torch_profiler"] = "cpu"
        notes.append("torch.profiler records the CPU only, as Nsight Systems records the GPU")
    directory = outdir.prepare(out or settings.resolve().out, force=force)
    env = command.environment(directory, os.environ, **options)
    if profiler is None:
        code = command.run(run, env)
    else:
        wrapped = nsys.profile(profiler, directory, run)
        finishing = nsys.Finishing(directory, last_words.say)
        code = command.run(wrapped, env, lambda: nsys.running(directory), nsys.streams(directory), finishing)
    try:  # the command has run: whatever goes wrong now, its exit code stands
        asked = settings.resolve(out=directory, **options)
        rundir.create(asked)  # where no process of the command did
        if profiler is not None:
            notes += last_words.of_nsight(profiler, directory, nvtx=asked.nvtx)
        line = last_words.of_run(directory, run, notes)
    except OSError as error:
        line = f"{error.filename or directory}: {error.strerror or error}; what was recorded before is kept"
    last_words.say(line)
    return code


def no_program(name: str) -> TprofError:
    """As a shell says it."""
    if Path(name).is_file():
        problem = f"{name}: is not executable; run it with its interpreter, or chmod +x"
        return TprofError(problem, exit_code=command.NOT_EXECUTABLE)
    if name.startswith("-"):
        return UsageError(f"{name} is no option here; see `--help`")
    return TprofError(f"{name}: not found; check its name and PATH", exit_code=command.NOT_FOUND)
