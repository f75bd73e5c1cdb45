"""`tprof demo`: the main job on the recordings that come with tprof."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tprof.cli import output, question
from tprof.cli.options import Ask, Force
from tprof.cli.reports import write_report
from tprof.errors import DONE
from tprof.samples import sample_paths

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from tprof.facade import Trace

_TITLES = {"torch": "seen by torch.profiler", "nsight": "seen by Nsight Systems"}
_INTRO = """\
A small service with an autotuned Triton matmul, a Triton softmax and a torch.compile'd layer starts on an NVIDIA H200
and serves eight requests. The first of each new shape is slow, the others are not. The same program was recorded
twice, once with each profiler; both files are real, cut to fit into a package. Nothing here needs a GPU or torch."""
_READ_ON = """\
In both recordings the device waits nearly all the time, and its busiest kernel is a cache flush of the autotuner, not
the model. Three requests pay for that: the first compiles everything, the third tunes for a new shape, the fifth
compiles and tunes for another; the other five are warm and take about a millisecond."""

Report = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to write the HTML report.")]


def demo(report: Report = Path("tprof-demo.html"), force: Force = True) -> int:
    """Start here: where an H200 cold start went, from two bundled recordings, with an HTML report."""
    output.check(Ask(output=report, force=force))
    from tprof.present import text  # noqa: PLC0415  keeps `--help` quick

    to = text.console()
    to.print(text.title("tprof demo: where did a cold start go?"))
    to.print(_INTRO.replace("\n", " "))
    traces: dict[str, Trace] = {}
    for name, path in sample_paths().items():
        trace = question.load_trace(Ask(sources=[str(path)]))
        title = _TITLES.get(name.rpartition("-")[2], name)
        traces[title[0].upper() + title[1:]] = trace
        to.print(_chapter(f"The cold start {title}", trace, to))
    write_report(traces, report)
    to.print(text.title("What this says"))
    to.print(_READ_ON.replace("\n", " "))
    to.print(_next(report, [str(p) for p in sample_paths().values()]))
    return DONE


def _chapter(title: str, trace: Trace, to: Console) -> RenderableType:
    from rich.console import Group  # noqa: PLC0415  as above

    from tprof.analyze import Options  # noqa: PLC0415  as above
    from tprof.present import text  # noqa: PLC0415  as above

    idle, cold = trace.idle(Options(top=6)), trace.cold()
    return Group(
        text.title(title),
        text.overview(trace.summary(), to),
        *text.table(idle, "phases", to, 8),
        *text.table(idle, "gaps", to),
        *text.table(cold, "phases", to),
        *text.table(cold, "kernels", to),
    )


def _next(report: Path, samples: list[str]) -> str:
    return f"""
The report:          {report.resolve()}   (open it in a browser)
The app:             tprof app   (pip install 'triton-tprof[app]' brings it; in a checkout: make app)
One recording:       tprof summary {samples[0]}
Your own:            tprof summary TRACE.json.gz, or REPORT.sqlite, or a directory of them
Recording Triton:    tprof record -o RUN -- python script.py; then tprof summary RUN
"""
