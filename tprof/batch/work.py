"""What is done with one recording: read it, write its tables, say what became of it. Runs in a worker."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tprof import __version__
from tprof.batch.extract import collectives, compiles, processes
from tprof.batch.folder import Folder
from tprof.errors import FAILED, TprofError
from tprof.present import tabular

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tprof.analyze import Options, Result, Row
    from tprof.batch.paths import Source
    from tprof.facade import Trace

# Table of the data set <- (method of the trace, table of its result)
TABLES: Final = {
    "devices": ("summary", "devices"),
    "wall": ("summary", "wall"),
    "cold": ("summary", "cold"),
    "findings": ("summary", "findings"),
    "requests": ("requests", "requests"),
    "kernels": ("kernels", "kernels"),
    "shapes": ("shapes", "shapes"),
    "buckets": ("shapes", "buckets"),
    "idle": ("idle", "phases"),
    "gaps": ("idle", "gaps"),
    "cold_phases": ("cold", "phases"),
    "cold_kernels": ("cold", "kernels"),
    "candidates": ("cold", "candidates"),
    "first_uses": ("cold", "first_uses"),
    "variants": ("cold", "specializations"),
    "tunings": ("cold", "tunings"),
    "cache_misses": ("cold", "cache_misses"),
}
# What only the comparison of ranks needs.
EXTRACTS: Final = {"processes": processes, "compiles": compiles, "collectives": collectives}
_BEAT_SECONDS: Final = 0.5


@dataclass(frozen=True)
class Task:
    """One source, where its tables go, and what is asked of it."""

    source: Source
    out: str
    options: Options
    phases: Mapping[str, str]

    @property
    def state(self) -> list[Any]:
        """What must be the same for a finished source to be skipped, as JSON has it."""
        buckets = [repr(b) for b in self.options.buckets]
        return [*self.source.state, __version__, list(self.options.ranges), dict(self.phases), buckets]


@dataclass(frozen=True)
class Outcome:
    """What became of a source: done, or why not."""

    source: Source
    message: str = ""
    exit_code: int = 0


def analyse(task: Task) -> Outcome:
    """Read a source and write its tables; an error becomes part of the outcome."""
    from tprof.facade import load  # noqa: PLC0415  a driver that only sends tasks does not need it

    path = task.source.path
    try:
        options = task.options
        trace = load(path, phases=task.phases, requests=options.ranges, progress=_beat(task))
        _write(trace, task)
    except TprofError as error:
        return Outcome(task.source, str(error), error.exit_code)
    except OSError as error:
        return Outcome(task.source, f"{path}: {error.strerror or error}", FAILED)
    except MemoryError:
        return Outcome(task.source, f"{path}: not enough memory", FAILED)
    return Outcome(task.source)


def _beat(task: Task) -> Callable[[int, int], None]:
    """Progress for whoever looks: a file with done and total, written twice a second."""
    file, last = Folder(task.out).working / f"{task.source.slug}.progress", [0.0]

    def progress(done: int, total: int) -> None:
        if time.monotonic() - last[0] > _BEAT_SECONDS:
            last[0] = time.monotonic()
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{done} {total}")

    return progress


def _write(trace: Trace, task: Task) -> None:
    folder, slug = Folder(task.out), task.source.slug
    results = {name: getattr(trace, name)(task.options) for name in dict.fromkeys(m for m, _ in TABLES.values())}
    for name, (method, table) in TABLES.items():
        folder.write_table(name, slug, tabular.arrow(results[method], table))
    for name, extract in EXTRACTS.items():
        folder.write_table(name, slug, extract(trace))
    folder.write_table("warnings", slug, tabular.arrow(_warnings(trace)))
    summary = results["summary"]
    folder.write(f"summary/{slug}.json", (tabular.json_text(summary) + "\n").encode())
    record = {"state": task.state, "row": _row(summary), "sources": summary.sources}
    folder.finish(slug, record)


def _warnings(trace: Trace) -> Result:
    from tprof.analyze import Result  # noqa: PLC0415  as above

    return Result("warnings", {"warnings": [n.to_dict() for n in trace.notes]}, {})


def _row(summary: Result) -> Row:
    """The figures of one source that fit on a line; those of several devices are summed."""
    payload = summary.payload
    devices, requests = payload["devices"], payload["requests"]
    return {
        "wall_ns": payload["window"]["wall_ns"],
        "devices": len(devices),
        "events": sum(d["events"] for d in devices),
        "busy_ns": sum(d["busy_ns"] for d in devices),
        "idle_ns": sum(d["idle_ns"] for d in devices),
        "cold_ns": sum(r["cold_tax_ns"] for r in requests),
        "requests": len(requests),
        "cold_requests": sum(f["count"] for f in payload["findings"] if f["code"] == "cold-request"),
        "warnings": len(summary.notes),
    }
