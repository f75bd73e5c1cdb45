"""`tprof top`: what a run is compiling or tuning right now, also while it hangs."""

from __future__ import annotations

import json
import sys
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tprof.errors import DONE, SourceError
from tprof.events import SCHEMA_VERSION
from tprof.record import live, live_text


class Shape(StrEnum):
    """How a look is written."""

    TABLE = "table"
    JSON = "json"


Run = Annotated[Path, typer.Argument(metavar="RUN", help="Run directory of `tprof record` or `tprof.trace`.")]
Once = Annotated[bool, typer.Option("--once", help="Look once, also on a terminal.")]
Written = Annotated[Shape, typer.Option("--format", "-f", help="A table of text, or JSON; JSON looks once.")]
Every = Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="How often a terminal is refreshed.")]


def top(run: Run, once: Once = False, format_: Written = Shape.TABLE, every: Every = 0.5) -> int:
    """What a running or hung process compiles or tunes right now, for how long, and what is done; Ctrl-C leaves."""
    watch = _watch(run)
    if format_ is Shape.JSON:
        sys.stdout.write(
            json.dumps({"schema_version": SCHEMA_VERSION, "run": str(run), **watch.look()}, indent=2) + "\n"
        )
    elif once or not sys.stdout.isatty():
        sys.stdout.write("\n".join(live_text.lines(watch.look(), str(run))) + "\n")
    else:
        _follow(watch, run, every)
    return DONE


def _watch(run: Path) -> live.Watch:
    if not run.is_dir():
        problem = "is no run directory" if run.exists() else "does not exist"
        raise SourceError(run, f"{problem}; name the directory that `tprof record -o` made")
    if not (run / "run.json").exists() and not any(run.glob("process-*.jsonl*")) and not (run / "started").exists():
        raise SourceError(run, "holds no run; name the directory that `tprof record -o` made")
    return live.Watch(run)


def _follow(watch: live.Watch, run: Path, every: float) -> None:
    """Refresh until every process has ended, or Ctrl-C."""
    from rich.live import Live  # noqa: PLC0415  keeps a snapshot quick

    look = watch.look()
    with Live(_shown(look, run), auto_refresh=False) as screen:
        try:
            while _goes_on(look):
                time.sleep(every)
                look = watch.look()
                screen.update(_shown(look, run), refresh=True)
        except KeyboardInterrupt:
            return


def _goes_on(look: live.Record) -> bool:
    """Whether anything may still happen; a run without a process has not begun."""
    states = {row["state"] for row in look["processes"]}
    return not states or bool(states & {"running", "silent", "unknown"})


def _shown(look: live.Record, run: Path) -> Any:
    from rich.text import Text  # noqa: PLC0415  as above

    head, *rest = live_text.lines(look, str(run))
    return Text.assemble((head, "bold"), *(f"\n{line}" for line in rest))
