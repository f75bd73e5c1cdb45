"""`tprof.load(...)`: read, align, combine; and the `Trace` whose methods are the analyses."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING

from tprof import events, model
from tprof.align import AlignOptions, align, combine, join
from tprof.align.calls import is_kind
from tprof.analyze import (
    Attribution,
    Options,
    Result,
    advise,
    autotune,
    cold,
    idle,
    kernels,
    requests,
    shapes,
    summarize,
)
from tprof.analyze.result import source_rows
from tprof.errors import SourceError
from tprof.events import Note
from tprof.present.html import fragment
from tprof.read import cache as kept
from tprof.read import expand, read_source, spill

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tprof.analyze.autotune import Costs


class Answer(Result):
    """A result that a notebook shows as the report does."""

    def _repr_html_(self) -> str:
        return fragment(self)


def _shown(result: Result) -> Answer:
    return Answer(**vars(result))


class Trace(model.Trace):
    """A trace that answers. Every method takes `Options`; results have `.frame`, `.to_dict()` and a notebook view."""

    def _repr_html_(self) -> str:
        """What was read, in a notebook: each source, the rows of each table, and the warnings."""
        rows = [{"table": name, "rows": getattr(self, name).num_rows} for name in events.TABLES]
        tables = {"tables": [row for row in rows if row["rows"]]}
        return fragment(Result("trace", tables, {}, self.notes, source_rows(self)))

    @cached_property
    def attribution(self) -> Attribution:
        """Whose time it was, computed once and shared by the methods."""
        return Attribution(self)

    def range_names(self) -> list[str]:
        """Names of user ranges, the most frequent first: what `requests` could be asked about."""
        host = self.host.filter(is_kind(self.host, "range", "startend"))
        return [name for name, _ in Counter(host["name"].to_pylist()).most_common()]

    def summary(self, options: Options | None = None) -> Answer:
        """Window, devices, cold start, requests, findings."""
        return _shown(summarize(self.attribution, options or Options()))

    def idle(self, options: Options | None = None) -> Answer:
        """Why each device was idle."""
        return _shown(idle(self.attribution, options or Options()))

    def cold(self, options: Options | None = None) -> Answer:
        """What was compiled, looked up, built, loaded and tuned."""
        return _shown(cold(self.attribution, options or Options()))

    def autotune(
        self, options: Options | None = None, costs: Costs | None = None, ceiling_bytes_per_s: float | None = None
    ) -> Answer:
        """Why each winner of an autotuner won, and what the searches cost and saved.

        Args:
            options: what part of the trace.
            costs: kernel -> what a call must move and compute, from the values of its autotune key (`KernelSpec.cost`).
            ceiling_bytes_per_s: what the device's memory was measured to give.
        """
        return _shown(autotune(self.attribution, options or Options(), costs, ceiling_bytes_per_s))

    def kernels(self, options: Options | None = None) -> Answer:
        """What ran on the devices, by name and purpose."""
        return _shown(kernels(self.attribution, options or Options()))

    def shapes(self, options: Options | None = None) -> Answer:
        """The life of every compiled kernel in each of its shapes, and which are worth preparing."""
        return _shown(shapes(self.attribution, options or Options()))

    def requests(self, options: Options | None = None, reference: Mapping[str, int] | None = None) -> Answer:
        """Budget of every request, their latency, and what caused the cold ones.

        Args:
            options: what part of the trace.
            reference: steady latency to compare with, by request name (`all` for all), ns.
        """
        return _shown(requests(self.attribution, options or Options(), reference))

    def advise(self, options: Options | None = None, job_ns: int | None = None) -> Answer:
        """Which operators are worth a Triton kernel, and which are not.

        Args:
            options: what part of the trace.
            job_ns: length of the whole job of which this is a recording, ns.
        """
        return _shown(advise(self.attribution, options or Options(), job_ns))


def load(
    *sources: str | Path,
    phases: Mapping[str, str] | None = None,
    requests: tuple[str, ...] = (),
    progress: Callable[[int, int], None] | None = None,
    skip_unreadable: bool = False,
    cache: bool = True,
    low_memory: bool = False,
) -> Trace:
    """Read one or more recordings into one aligned trace.

    Args:
        sources: run directories, torch.profiler traces, Nsight Systems exports or reports, gzipped or not, or
            directories of them.
        phases: glob over range names -> phase (`autotune`, …) or purpose (`warmup`, …), for traces annotated by hand.
        requests: globs of the ranges that are requests; default `request*`, else `ProfilerStep*`.
        progress: called with (done, total) of the source that is being read.
        cache: take a large file from the cache if it was read before, and keep it there if not.
        low_memory: from here on, this thread's large numpy arrays lie in files of the cache folder.
        skip_unreadable: go on without a source that cannot be read, and say so in a note `unreadable-source`.

    Raises:
        SourceError: a source (with `skip_unreadable`: every source) cannot be read; the message says which and why.
    """
    if low_memory:
        spill.use()
    options = AlignOptions(dict(phases or {}), tuple(requests))
    traces, failed = [], []
    for path in expand(sources):
        try:
            traces.append(_opened(path, options, progress, cache=cache))
        except SourceError as error:
            if not skip_unreadable:
                raise
            failed.append(error)
    if failed and not traces:
        raise failed[0]
    joined = combine(traces)
    notes = tuple(Note("unreadable-source", str(error), 1, str(error.path)) for error in failed)
    return Trace(**{f.name: getattr(joined, f.name) for f in fields(joined)} | {"notes": (*joined.notes, *notes)})


def _opened(
    path: Path, options: AlignOptions, progress: Callable[[int, int], None] | None, *, cache: bool
) -> model.Trace:
    """One source, aligned: from the cache, or read and kept there."""
    slot = kept.find(path, [dict(options.phases), list(options.requests)]) if cache else None
    if slot and (known := slot.load()):
        return known
    found = read_source(path, progress)
    run = found[0].sources["format"][0].as_py() == "tprof"
    trace = align(join(found) if run else found[0], options)
    return (slot.kept(trace) if slot else None) or trace
