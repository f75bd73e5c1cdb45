"""What is known of each first use, candidate and variant of one recorded process, of its graphs and its start."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from tprof.read import run_variants
from tprof.variants import Change, changes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tprof.read.run_journal import Journal, Record, Span

_MS: Final = 1_000_000
_GRAPH_EVENTS: Final = {  # record -> what it is called, and what came of it
    "recompile": ("function", "reasons"),
    "graph_cache": ("cache", "outcome"),
    "selection": ("name", "best"),
}


class ColdRows:
    """Rows of the tables about what was cold.

    Args:
        journal: of the process.
        spans: its spans, in the order of its host rows.
        thread: tid -> row of `threads`.
        launched: launches per span id that was timed for or cold.
    """

    def __init__(
        self, journal: Journal, spans: list[Span], thread: dict[int, int], launched: Mapping[int, int]
    ) -> None:
        self._journal, self._spans, self._thread, self._launched = journal, spans, thread, launched
        self._row = {span.id: i for i, span in enumerate(spans)}
        self._of_kind: dict[str, list[Span]] = {}
        self._children: dict[int, list[Span]] = {}
        for span in spans:
            self._of_kind.setdefault(span.kind, []).append(span)
            self._children.setdefault(span.parent, []).append(span)

    def end(self, span: Span) -> int:
        """End of a span; of one that never ended, when the process was last heard of."""
        return max(span.end if span.end is not None else self._journal.last_ns, span.start)

    # ---- variants

    @cached_property
    def _variants(self) -> list[Record]:
        """Specializations, and the kernels that Inductor compiled as if they had been recorded as such."""
        generated = [s for s in self._of_kind.get("jit", []) if s.attrs.get("origin") == "inductor"]
        found = [(s, self._kernels.get(s.attrs.get("kernel"))) for s in generated]
        described = [(s, kernel) for s, kernel in found if kernel and kernel.get("function")]
        own = [run_variants.of_kernel(kernel) | {"span": s.id} for s, kernel in described]
        return [*self._journal.records.get("specialization", []), *own]

    @cached_property
    def _kernels(self) -> dict[Any, Record]:
        return {k["id"]: k for k in self._journal.records.get("kernel", [])}

    @cached_property
    def _loads(self) -> dict[Any, Span]:
        """First load of each kernel."""
        return {s.attrs.get("kernel"): s for s in reversed(self._of_kind.get("load", []))}

    @cached_property
    def _first_shape(self) -> dict[Any, Record]:
        """First shape key of each kernel."""
        return {s.get("kernel"): s for s in reversed(self._journal.records.get("shape", []))}

    def specializations(self) -> list[Record]:
        """One row per compiled variant that was asked for."""
        return [self._variant(said, new) for said, new in zip(self._variants, changes(self._variants), strict=True)]

    def _variant(self, said: Record, new: list[Change] | None) -> Record:
        jit = self._journal.spans.get(said.get("span", 0))
        kernel = self._kernels.get(jit.attrs.get("kernel")) if jit else None
        load = self._loads.get(kernel["id"]) if kernel else None
        return {
            "pid": self._journal.pid,
            "process": 0,
            "function": said["function"],
            "kernel": kernel["name"] if kernel else None,
            "start_ns": jit.start if jit else None,
            "file": said.get("file"),
            "line": said.get("line"),
            "hash": kernel["hash"] if kernel else None,
            "arguments": json.dumps(said.get("arguments") or []),
            "options": json.dumps(said.get("options")),
            "changes": None if new is None else json.dumps(new),
            "cache_hit": jit.attrs.get("cache_hit") if jit else None,
            "registers": load.attrs.get("registers") if load else None,
            "spills": load.attrs.get("spills") if load else None,
            "shared_bytes": kernel.get("shared_bytes") if kernel else None,
            "binary_bytes": kernel.get("binary_bytes") if kernel else None,
            "scalars": run_variants.scalars(self._first_shape.get(kernel["id"])) if kernel else None,
            "key_parts": run_variants.key_parts(kernel),
        }

    # ---- candidates of an autotuner

    def candidates(self) -> list[Record]:
        """One row per candidate that was timed, failed ones included."""
        return [self._candidate(s) for s in self._of_kind.get("candidate", [])]

    def _candidate(self, span: Span) -> Record:
        times = span.attrs.get("timings_ms")
        search = next((s for s in self._around(span) if s.kind == "autotune"), None)
        won = bool(search and search.attrs.get("config") and search.attrs["config"] == span.attrs.get("config"))
        return {
            "start_ns": span.start,
            "end_ns": self.end(span),
            "thread": self._thread[span.tid],
            "kernel": span.name,
            "config": span.attrs.get("text") or json.dumps(span.attrs.get("config")),
            "basis": "recorded",
            "launches": self._launched.get(span.id, 0),
            "graph_compile": span.attrs.get("origin") == "inductor",
            "median_ns": round(times[0] * _MS) if times and times[0] is not None else None,
            "winner": won,
            "error": span.attrs.get("failed") or span.error,
        }

    def _around(self, span: Span) -> Iterator[Span]:
        """Spans around a span, nearest first."""
        above = self._journal.spans.get(span.parent)
        while above is not None:
            yield above
            above = self._journal.spans.get(above.parent)

    # ---- first uses

    def compiles(self) -> list[Record]:
        """One row per first use of a compiled variant: its compile or lookup, and the load that followed."""
        timed = {s.id: i for i, s in enumerate(self._of_kind.get("candidate", []))}
        variant = {int(said.get("span", 0)): i for i, said in enumerate(self._variants)}
        return [self._compile(s, timed, variant) for s in self._of_kind.get("jit", [])]

    def _compile(self, jit: Span, timed: dict[int, int], variant: dict[int, int]) -> Record:
        load = self._loads.get(jit.attrs.get("kernel"))
        load = load if load and load.start >= jit.start else None
        cache = self._inside(jit, "cache")
        build = self._inside(load, "launcher_build") if load else 0
        stages = self._stages(jit)
        return {
            "start_ns": jit.start,
            "end_ns": self.end(load or jit),
            "thread": self._thread[jit.tid],
            "kernel": jit.name,
            "basis": "recorded",
            "cache_hit": jit.attrs.get("cache_hit"),
            "graph_compile": jit.attrs.get("origin") == "inductor",
            "specialization": variant.get(jit.id),
            "candidate": next((timed[s.id] for s in self._around(jit) if s.id in timed), None),
            "loads": 1 if load else 0,
            "compile_ns": self.end(jit) - jit.start - cache,
            "cache_ns": cache,
            "launcher_build_ns": build,
            "module_load_ns": self.end(load) - load.start - build if load else 0,
            "stages": json.dumps(stages) if stages else None,
        }

    def _stages(self, jit: Span) -> dict[str, int]:
        """Time of each stage right inside a compile, by its name."""
        stages = [s for s in self._children.get(jit.id, ()) if s.kind == "stage"]
        return {str(s.attrs.get("stage", s.name)): self.end(s) - s.start for s in stages}

    def _inside(self, span: Span, kind: str) -> int:
        """Summed time of the spans of a kind right inside a span, ns."""
        return sum(self.end(s) - s.start for s in self._children.get(span.id, ()) if s.kind == kind)

    # ---- graphs, and the start of the process

    def graph_events(self) -> list[Record]:
        """What Dynamo and Inductor said of graphs, by kind."""
        return [
            {
                "start_ns": said["t_ns"],
                "thread": self._thread[said["tid"]],
                "kind": kind,
                "name": str(said.get(named)),
                "span": self._row.get(said.get("span", 0)),
                "outcome": next(iter(said.get(came) or [None])) if came == "reasons" else said.get(came),
                "attrs": json.dumps({k: v for k, v in said.items() if k not in ("type", "t_ns", "tid", "span")}),
            }
            for kind, (named, came) in _GRAPH_EVENTS.items()
            for said in self._journal.records.get(kind, [])
        ]

    def startup(self) -> list[Record]:
        """What the process did before it was recorded, as far as it says so."""
        records, process = self._journal.records, self._journal.process
        begun = next((c["t_ns"] for c in records.get("clock", []) if c.get("when") == "start"), None)
        rows: list[tuple[str, str, int, int, int | None]]
        rows = [("import", s["name"], s["t_ns"], s["end_ns"], None) for s in records.get("import", [])]
        if (started := process.get("started_ns")) is not None:
            rows += [("interpreter", "", started, s["t_ns"], None) for s in records.get("interpreter", [])]
        if begun is not None and "t_ns" in process:
            rows.append(("recorder", "", process["t_ns"], begun, None))
        marks = [m for m in records.get("mark", []) if m.get("name") == "ready"][:1]
        rows += [("ready", "", m["t_ns"], m["t_ns"], self._thread.get(m["tid"])) for m in marks]
        return [
            {"start_ns": start, "end_ns": end, "process": 0, "kind": kind, "name": name or kind, "thread": thread}
            for kind, name, start, end, thread in rows
        ]
