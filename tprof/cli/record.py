"""`tprof record`: run a command and record every Python process in it that uses Triton."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tprof.errors import TprofError, UsageError
from tprof.record import autoload, command, live, live_text, nsys, outdir, rundir, settings, support


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
Torch = Annotated[Profiler, typer.Option(help="Run torch.profiler too: operators, or also the GPU.")]
When = Annotated[Shapes, typer.Option(help="Read tensor shapes once per grid and scalars, or at every launch.")]
NoNvtx = Annotated[bool, typer.Option("--no-nvtx", help="Emit no NVTX ranges.")]
Replace = Annotated[bool, typer.Option("--force", help="Replace the run that RUN holds.")]

_BLIND = {
    "old-python": "a process runs Python {}, and tprof records 3.11 and newer",
    "another-tprof": "a process has another project named tprof: pip uninstall tprof",
    "broken-tprof": "a process could not import tprof's recorder",
}


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
    if outer := os.environ.get(autoload.VARIABLE):
        _say(f"this runs within `tprof record` already: the command is recorded into {outer}, the options are not used")
        return command.run(run, os.environ)
    profiler = nsys.usable() if nsight else None
    if shutil.which(run[0]) is None:
        raise _no_program(run[0])
    options = {"torch_profiler": str(torch_profiler), "shapes": str(shapes), "nvtx": "0" if no_nvtx else "1"}
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
        code = command.run(wrapped, env, lambda: nsys.target(directory), nsys.streams(directory))
        notes += _nsight_notes(profiler, directory, nvtx=not no_nvtx)
    rundir.create(settings.resolve(out=directory, **options))  # where no process of the command did
    _say(_last_words(directory, run, notes))
    return code


def _no_program(name: str) -> TprofError:
    """As a shell says it."""
    if Path(name).is_file():
        problem = f"{name}: is not executable; run it with its interpreter, or chmod +x"
        return TprofError(problem, exit_code=command.NOT_EXECUTABLE)
    if name.startswith("-"):
        return UsageError(f"{name} is no option of tprof record; see `tprof record --help`")
    return TprofError(f"{name}: not found; check its name and PATH", exit_code=command.NOT_FOUND)


def _nsight_notes(profiler: nsys.Nsys, directory: Path, *, nvtx: bool) -> list[str]:
    if problem := nsys.export(profiler, directory):
        return [problem]
    recorded = any(directory.glob("process-*.jsonl"))
    if nvtx and recorded and not nsys.ranges_arrived(directory / "nsight.sqlite"):
        return [_silent(profiler.version, _nvtx_of(directory))]
    return []


def _silent(nsight: str, nvtx: str | None) -> str:
    """Why the capture holds no ranges of tprof."""
    return support.nvtx_advice(nvtx, nsight) or (
        f"no NVTX ranges arrived in Nsight Systems {nsight} (nvtx {nvtx}): the two files are joined by their clocks alone"
    )


def _nvtx_of(directory: Path) -> str | None:
    """The nvtx that the recorded processes had."""
    said = [row["versions"].get("nvtx") for row in live.Watch(directory).look()["processes"]]
    return next((version for version in said if version), None)


def _last_words(directory: Path, run: list[str], notes: list[str]) -> str:
    """One line: what was recorded, how to look at it, and what to know about it."""
    look = live.Watch(directory).look()
    count = len(look["processes"])
    shown = _short(directory)
    notes = [*notes, *_process_notes(directory, run, count), *_state_notes(look)]
    told = "; note: ".join(["", *notes])
    if not count:
        return f"{shown}: nothing recorded{told}"
    what = f"{live_text.count(count, 'process', 'es')} recorded, {live_text.done(look['done'])}"
    return f"{shown}: {what}; look at it with: tprof summary {shlex.quote(str(shown))}{told}"


def _short(directory: Path) -> Path:
    """As the user would type it."""
    here = Path.cwd()
    return directory.relative_to(here) if directory.is_relative_to(here) else directory


def _process_notes(directory: Path, run: list[str], recorded: int) -> list[str]:
    seen = outdir.started(directory)
    blind = {why: python for _, python, why in seen if why in _BLIND}
    notes = [_BLIND[why].format(python) for why, python in blind.items()]
    if flags := command.blind_flags(run):
        notes.append(f"python -{flags} ignores what makes it record: leave that flag out")
    elif not seen:
        notes.append("no Python process was started with this environment")
    elif not recorded and not notes:
        notes.append("no triton was imported")
    return notes


def _state_notes(look: live.Record) -> list[str]:
    states = [row["state"] for row in look["processes"]]
    alive = sum(state in {"running", "silent"} for state in states)
    notes = [f"{live_text.count(alive, 'process', 'es')} of it still running"] if alive else []
    killed = [row for row in look["now"] if row["state"] == "killed"]
    notes += [f"pid {row['pid']} was killed while {live_text.span(row['what'][-1])}" for row in killed[:3]]
    return notes + [f"{live_text.count(n, 'warning')} {code}" for code, n in look["notes"].items()]


def _say(line: str) -> None:
    sys.stderr.write(f"tprof: {live_text.plain(line)}\n")
    sys.stderr.flush()
