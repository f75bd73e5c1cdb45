"""What `tprof record` says when the command has ended: one line on stderr."""

from __future__ import annotations

import os
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Final

from tprof.record import command, live, live_text, nsys, outdir, support

_BLIND: Final = {
    "old-python": "a process runs Python {}, and tprof records 3.11 and newer",
    "another-tprof": "a process has another project named tprof: pip uninstall tprof",
    "refused": "recording is refused on this platform (`tprof doctor` says why)",
    "broken-tprof": "a process could not import tprof's recorder",
}


def of_nsight(profiler: nsys.Nsys, directory: Path, *, nvtx: bool) -> list[str]:
    """Export the capture; what is to be said about it."""
    if problem := nsys.export(profiler, directory):
        return [problem]
    recorded = any(directory.glob("process-*.jsonl"))
    if nvtx and recorded and not nsys.ranges_arrived(directory / "nsight.sqlite"):
        return [_silent(profiler.version, _nvtx_of(directory))]
    return []


def _silent(nsight: str, nvtx: str | None) -> str:
    """Why the capture holds no ranges of tprof."""
    return support.nvtx_advice(nvtx, nsight) or (
        f"no NVTX ranges arrived in Nsight Systems {nsight} (nvtx {nvtx}): only clocks join the two files"
    )


def _nvtx_of(directory: Path) -> str | None:
    """The nvtx that the recorded processes had."""
    said = [row["versions"].get("nvtx") for row in live.Watch(directory).look()["processes"]]
    return next((version for version in said if version), None)


def of_run(directory: Path, run: list[str], notes: list[str]) -> str:
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


def say(line: str) -> None:
    """One line on stderr; nobody needs to read it."""
    with suppress(OSError):
        os.write(2, f"tprof: {live_text.plain(line)}\n".encode(errors="replace"))
