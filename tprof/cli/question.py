"""From what was typed to a trace and options; progress on stderr while it is read."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tprof.cli import output
from tprof.cli.options import Ask, Format
from tprof.cli.settings import Settings, load_settings, parse_phases
from tprof.cli.window import parse_window
from tprof.errors import CANNOT_JUDGE, DONE, TprofError, UsageError
from tprof.present.names import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tprof.analyze import Options, Result
    from tprof.facade import Trace


owned = False  # whether this process is the program `tprof`, and no other program that calls `main`

NO_DEVICE = (
    "no device events were recorded, so nothing can be said about the GPU; record CUDA activity "
    "(torch.profiler: activities=[CPU, CUDA]; nsys: --trace=cuda)"
)


def settled(ask: Ask, *files: Path | None, settings: Settings | None = None) -> Ask:
    """What was typed, completed by the settings where nothing was.

    Args:
        ask: what was typed.
        files: what else will be written.
        settings: read already.

    Raises:
        UsageError: a setting is wrong, or what is asked for cannot be written.
    """
    settings = settings or load_settings(Path.cwd())
    if settings.format is not None and settings.format not in list(Format):
        raise UsageError(f"tool.tprof.format {settings.format!r} is none of {', '.join(Format)}")
    default = Format(settings.format) if settings.format else Format.TABLE
    phases = settings.phases | parse_phases(ask.phases)
    done = replace(
        ask,
        format=ask.format or output.format_of(ask.output) or default,
        ranges=ask.ranges or settings.ranges,
        phases=tuple(f"{glob}={phase}" for glob, phase in phases.items()),
        top=ask.top or settings.top,
        buckets=settings.buckets,
    )
    output.check(done, *files)
    return done


def spare_pandas() -> None:
    """Do without pandas, where this process runs one command line and no more."""
    if owned:
        from tprof import model  # noqa: PLC0415  as below

        model.spare_pandas()


def load_trace(ask: Ask) -> Trace:
    """Read the sources; one that cannot be read is a warning as long as another can."""
    from tprof.facade import load  # noqa: PLC0415  numpy and Arrow cost a quarter of a second

    spare_pandas()
    with reading(ask.sources) as progress:
        return load(
            *ask.sources, phases=parse_phases(ask.phases), requests=ask.ranges, progress=progress, skip_unreadable=True,
            cache=not ask.no_cache, low_memory=ask.low_memory,
        )  # fmt: skip


def asked(ask: Ask, *files: Path | None, kernels: Sequence[str] | None = None) -> tuple[Ask, Trace, Options]:
    """What was typed, settled; its trace, and the options of an analysis, of these kernels only."""
    ask = settled(ask, *files)
    trace = load_trace(ask)
    return ask, trace, replace(options(ask, trace), kernels=tuple(kernels or ()))


def answer(ask: Ask, result: Result, *needs: tuple[object, str]) -> int:
    """Write a result; the exit code.

    Args:
        ask: where to, and how.
        result: what was found.
        needs: what the question takes, and what is said where the trace does not hold it.

    Raises:
        TprofError: the trace does not hold it.
    """
    output.write(ask, result)
    for found, problem in needs:
        if not found:
            raise cannot_judge(ask, problem)
    return DONE


def options(ask: Ask, trace: Trace) -> Options:
    """Options of the analysis.

    Raises:
        UsageError: the window is none, or no device of the trace is asked for.
    """
    from tprof.analyze import Options  # noqa: PLC0415  as above

    window = parse_window(ask.window, trace.attribution.extent) if ask.window else None
    asked = Options(window, ask.ranges, ask.devices, ask.ranks, ask.top, buckets=ask.buckets)
    if (ask.devices or ask.ranks) and trace.attribution.events:
        _check_devices(trace, asked)
    return asked


def _check_devices(trace: Trace, asked: Options) -> None:
    from tprof.analyze.devices import chosen_devices, device_label  # noqa: PLC0415  as above

    if chosen_devices(trace.attribution, asked):
        return
    names = trace.devices["name"].to_pylist()
    have = ", ".join(f"{device_label(trace, d)} ({names[d] or 'unnamed'})" for d in trace.attribution.events)
    ranks = sorted({str(r) for r in trace.processes["rank"].to_pylist() if r is not None})
    raise UsageError(
        f"no device matches --device or --rank; the trace has devices {have}; ranks {', '.join(ranks) or 'none'}"
    )


def cannot_judge(ask: Ask, problem: str) -> TprofError:
    """The trace does not hold what the question needs."""
    sources = ", ".join(ask.sources[:2]) + (" …" if len(ask.sources) > 2 else "")
    return TprofError(f"{sources}: {problem}", exit_code=CANNOT_JUDGE)


@contextmanager
def reading(sources: Sequence[str]) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar with a rate on stderr, gone when done; None where stderr is no terminal."""
    from rich.console import Console  # noqa: PLC0415  keeps `--help` quick
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # noqa: PLC0415  as above

    console = Console(stderr=True)
    if not console.is_terminal:
        yield None
        return
    text = (TextColumn(f"{{task.{field}}}", markup=False) for field in ("description", "fields[rate]"))
    sizes = _sizes(sources)
    with Progress(next(text), BarColumn(), next(text), TimeRemainingColumn(), console=console, transient=True) as bar:
        what = f"{len(sources)} sources" if len(sources) > 1 else clean(Path(sources[0]).name)
        task = bar.add_task(f"reading {what}", total=None, rate="")

        def update(done: int, total: int) -> None:
            unit = "MB/s" if total in sizes else "M rows/s"
            speed = bar.tasks[0].speed
            bar.update(task, completed=done, total=max(total, done), rate=f"{speed / 1e6:,.1f} {unit}" if speed else "")

        yield update


def _sizes(sources: Sequence[str]) -> set[int]:
    """Sizes of the files: progress whose total is one of them counts bytes, any other rows."""
    from tprof.read import expand  # noqa: PLC0415  as above

    return {path.stat().st_size for path in expand(sources) if path.is_file()}


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[], None]]:
    """A bar over whole things on stderr, gone when done; nothing where stderr is no terminal."""
    from rich.console import Console  # noqa: PLC0415  keeps `--help` quick
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415  as above

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
