"""`tprof.load(...)`: read, align, combine; and the `Trace` whose methods are the analyses."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING

from tprof import model
from tprof.align import AlignOptions, align, combine, join
from tprof.align.calls import is_kind
from tprof.analyze import Attribution, Options, Result, cold, idle, kernels, requests, summarize
from tprof.errors import SourceError
from tprof.events import Note
from tprof.read import expand, read_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path


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

    def kernels(self, options: Options | None = None) -> Result:
        """What ran on the devices, by name and purpose."""
        return kernels(self.attribution, options or Options())

    def requests(self, options: Options | None = None) -> Result:
        """Budget of every request."""
        return requests(self.attribution, options or Options())


def load(
    *sources: str | Path,
    phases: Mapping[str, str] | None = None,
    requests: tuple[str, ...] = (),
    progress: Callable[[int, int], None] | None = None,
    skip_unreadable: bool = False,
) -> Trace:
    """Read one or more recordings into one aligned trace.

    Args:
        sources: run directories, torch.profiler traces, Nsight Systems exports or reports, gzipped or not, or
            directories of them.
        phases: glob over range names -> phase (`autotune`, …) or purpose (`warmup`, …), for traces annotated by hand.
        requests: globs of the ranges that are requests; default `request*`, else `ProfilerStep*`.
        progress: called with (done, total) of the source that is being read.
        skip_unreadable: go on without a source that cannot be read, and say so in a note `unreadable-source`.

    Raises:
        SourceError: a source (with `skip_unreadable`: every source) cannot be read; the message says which and why.
    """
    options = AlignOptions(dict(phases or {}), tuple(requests))
    traces, failed = [], []
    for path in expand(sources):
        try:
            found = read_source(path, progress)
            run = found[0].sources["format"][0].as_py() == "tprof"
            traces.append(align(join(found) if run else found[0], options))
        except SourceError as error:
            if not skip_unreadable:
                raise
            failed.append(error)
    if failed and not traces:
        raise failed[0]
    joined = combine(traces)
    notes = tuple(Note("unreadable-source", str(error), 1, str(error.path)) for error in failed)
    return Trace(**{f.name: getattr(joined, f.name) for f in fields(joined)} | {"notes": (*joined.notes, *notes)})
