"""`tprof.load(...)`: read, align, combine; and the `Trace` whose methods are the analyses."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING

from tprof import model
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
from tprof.errors import SourceError
from tprof.events import Note
from tprof.read import cache as kept
from tprof.read import expand, read_source, spill

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tprof.analyze.autotune import Costs


class Trace(model.Trace):
    """A trace that answers. Every method takes `Options`; results have `.frame`, `.to_dict()` and a notebook view."""

    @cached_property
    def attribution(self) -> Attribution:
        """Whose time it was, computed once and shared by the methods."""
        return Attribution(self)

    def range_names(self) -> list[str]:
        """Names of user ranges, the most frequent first: what `requests` could be asked about."""
        host = self.host.filter(is_kind(self.host, "range", "startend"))
        return [name for name, _ in Counter(host["name"].to_pylist()).most_common()]

    def summary(self, options: Options | None = None) -> Result:
        """Window, devices, cold start, requests, findings."""
        return summarize(self.attribution, options or Options())

    def idle(self, options: Options | None = None) -> Result:
        """Why each device was idle."""
        return idle(self.attribution, options or Options())

    def cold(self, options: Options | None = None) -> Result:
        """What was compiled, looked up, built, loaded and tuned."""
        return cold(self.attribution, options or Options())

    def autotune(
        self, options: Options | None = None, costs: Costs | None = None, ceiling_bytes_per_s: float | None = None
    ) -> Result:
        """Why each winner of an autotuner won, and what the searches cost and saved.

        Args:
            options: what part of the trace.
            costs: kernel -> what a call must move and compute, from the values of its autotune key (`KernelSpec.cost`).
            ceiling_bytes_per_s: what the device's memory was measured to give.
        """
        return autotune(self.attribution, options or Options(), costs, ceiling_bytes_per_s)

    def kernels(self, options: Options | None = None) -> Result:
        """What ran on the devices, by name and purpose."""
        return kernels(self.attribution, options or Options())

    def shapes(self, options: Options | None = None) -> Result:
        """The life of every compiled kernel in each of its shapes, and which are worth preparing."""
        return shapes(self.attribution, options or Options())

    def requests(self, options: Options | None = None, reference: Mapping[str, int] | None = None) -> Result:
        """Budget of every request, their latency, and what caused the cold ones.

        Args:
            options: what part of the trace.
            reference: steady latency to compare with, by request name (`all` for all), ns.
        """
        return requests(self.attribution, options or Options(), reference)

    def advise(self, options: Options | None = None, job_ns: int | None = None) -> Result:
        """Which operators are worth a Triton kernel, and which are not.

        Args:
            options: what part of the trace.
            job_ns: length of the whole job of which this is a recording, ns.
        """
        return advise(self.attribution, options or Options(), job_ns)


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
