"""`tprof demo`: the main job on the recordings that come with tprof."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tprof.cli import output, question
from tprof.cli.options import Ask, Force
from tprof.errors import DONE
from tprof.samples import sample_paths

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from tprof.facade import Trace

_CHAPTERS = {
    "cold-torch": "A cold start, seen by tprof and torch.profiler",
    "warm-torch": "Started again: what was compiled lies on disk",
    "ranks": "Two ranks of one job, one of them cold",
}
_INTRO = """\
A small service with an autotuned Triton matmul, attention and a torch.compile'd layer starts on an NVIDIA H200 and
serves eight requests of three lengths. The first of each length is slow, the others are not. tprof recorded it, with
torch.profiler beside it; the files are real. Nothing here needs a GPU or torch."""
_READ_ON = """\
In the cold start the device waits nearly all the time, and its busiest kernel is a cache flush of the autotuner, not
the model. Three requests pay for that: the first compiles everything, the third tunes for a new length, the fifth
compiles and tunes because 777 is not divisible by 16; the other five take a millisecond or two. Started again, nothing
is compiled, and yet the first request takes a second: graphs are traced, kernels fetched, winners searched anew. Of the
two ranks, one compiles while the other waits in a collective."""

Report = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the HTML report.")]


def demo(report: Report = Path("tprof-demo.html"), force: Force = True) -> int:
    """Start here: where an H200 cold start went, from three bundled recordings, with an HTML report."""
    output.check(Ask(output=report, force=force))
    from tprof.present import text  # noqa: PLC0415  keeps `--help` quick

    to = text.console()
    to.print(text.title("tprof demo: where did a cold start go?"))
    to.print(_INTRO.replace("\n", " "))
    traces: dict[str, Trace] = {}
    paths = {name: str(path) for name, path in sample_paths().items()}
    for name, title in _CHAPTERS.items():
        trace = traces[title] = question.load_trace(Ask(sources=[paths[name]]))
        to.print(_chapter(title, trace, to, whole=len(traces) == 1))
    output.write_report(traces, report)
    to.print(text.title("What this says"))
    to.print(_READ_ON.replace("\n", " "))
    to.print(_next(report, paths["cold-torch"]))
    return DONE


def _chapter(title: str, trace: Trace, to: Console, *, whole: bool) -> RenderableType:
    """A recording's overview; of the first also why its device was idle and what was cold."""
    from rich.console import Group  # noqa: PLC0415  as above

    from tprof.analyze import Options  # noqa: PLC0415  as above
    from tprof.present import text  # noqa: PLC0415  as above

    head = [text.title(title), text.overview(trace.summary(), to)]
    if not whole:
        return Group(*head)
    idle, cold = trace.idle(Options(top=6)), trace.cold()
    tables = [(idle, "phases", 8), (idle, "gaps", None), (cold, "phases", None), (cold, "kernels", None)]
    return Group(*head, *(part for result, name, most in tables for part in text.table(result, name, to, most)))


def _next(report: Path, sample: str) -> str:
    return f"""
The report:          {report.resolve()}   (open it in a browser)
The app:             tprof app   (pip install 'triton-tprof[app]' brings it; in a checkout: make app)
Why, in detail:      tprof cold {sample}
What to do first:    tprof summary {sample}
Your own:            tprof summary TRACE.json.gz, or REPORT.sqlite, or a directory of them
Recording Triton:    tprof record -o RUN -- python script.py; then tprof summary RUN
"""
