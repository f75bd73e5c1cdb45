"""Tables of one recorded process: spans and launches as host rows, and what is known of each kernel and candidate."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tprof.model import labels, nullable, table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tprof.read.run_journal import Journal, Record, Span

_KIND: Final = {"request": "request", "serve": "serve"}  # other spans without a phase are user ranges
_ABOUT: Final = ("jit", "load", "autotune", "candidate")  # spans whose name is a kernel's
_MS: Final = 1_000_000


class Tables:
    """Builds the tables of one process."""

    def __init__(self, journal: Journal, launches: dict[str, np.ndarray]) -> None:
        self._journal, self._launches = journal, launches
        self._spans = [s for s in journal.spans.values() if not s.attrs.get("async") and not s.attrs.get("skipped")]
        self._row = {span.id: i for i, span in enumerate(self._spans)}
        self.failed_launches = int((launches["t_exit"] < 0).sum())

    def unfinished(self) -> list[Span]:
        """Cold spans that were never ended, innermost ones only: they say what the process was at."""
        open_ = [s for s in self._spans if s.end is None and s.phase]
        parents = {s.parent for s in open_}
        return [s for s in open_ if s.id not in parents]

    # ---- host rows: the spans first, then the launches

    @cached_property
    def _tids(self) -> list[int]:
        named = [r["tid"] for r in self._journal.records.get("thread", [])]
        used = [*named, *(s.tid for s in self._spans), *np.unique(self._launches["tid"]).tolist()]
        return list(dict.fromkeys(used))

    def threads(self) -> pa.Table:
        """One row per thread that did anything."""
        names = {r["tid"]: r.get("name") for r in self._journal.records.get("thread", [])}
        host, pid = self._journal.process.get("host", ""), self._journal.pid
        columns = {"host": host, "pid": pid, "tid": self._tids, "name": [names.get(t) for t in self._tids]}
        return table("threads", columns, len(self._tids))

    def host(self) -> pa.Table:
        """Spans and launches."""
        spans, launches = self._span_rows(), self._launch_rows()
        return pa.concat_tables([spans, launches]).unify_dictionaries().combine_chunks()

    def _span_rows(self) -> pa.Table:
        spans, place = self._spans, {tid: i for i, tid in enumerate(self._tids)}
        columns = {
            "start_ns": [s.start for s in spans],
            "end_ns": [self._end(s) for s in spans],
            "thread": [place[s.tid] for s in spans],
            "pid": self._journal.pid,
            "tid": [s.tid for s in spans],
            "kind": ["cold" if s.phase else _KIND.get(s.kind, "startend") for s in spans],
            "name": [s.name for s in spans],
            "request": [self._row.get(s.request) for s in spans],
            "phase": [s.phase for s in spans],
            "kernel": [self._kernel(s) for s in spans],
            "attrs": [
                json.dumps({"kind": s.kind, **s.attrs, **({"error": s.error} if s.error else {})}) for s in spans
            ],
        }
        return table("host", columns, len(spans))

    def _end(self, span: Span) -> int:
        return max(span.end if span.end is not None else self._journal.last_ns, span.start)

    def _kernel(self, span: Span | None) -> str | None:
        """Function that a span was about: its own name or that of the nearest span around it that names one."""
        while span is not None:
            if span.kind in _ABOUT:
                return span.name
            if not span.phase:
                return None
            span = self._journal.spans.get(span.parent)
        return None

    def _launch_rows(self) -> pa.Table:
        launches, known = self._launches, self._shape_names
        n = len(launches["tid"])
        tids = np.array(self._tids, np.int64)
        order = np.argsort(tids, kind="stable")
        at = order[np.searchsorted(tids[order], launches["tid"])] if n else np.zeros(0, np.int64)
        code = _look_up(launches["shape"], known)
        rows = np.array([self._row.get(i, -1) for i in range(max(self._row, default=0) + 1)] or [-1])
        request = np.where(launches["request"] > 0, rows[np.clip(launches["request"], 0, len(rows) - 1)], -1)
        names, keys = [k for k, _ in known.values()], [key for _, key in known.values()]
        columns = {
            "start_ns": launches["t_enter"],
            "end_ns": np.maximum(launches["t_exit"], launches["t_enter"]),
            "thread": at.astype(np.int32),
            "pid": self._journal.pid,
            "tid": launches["tid"],
            "kind": "launch",
            "name": labels(np.where(code < 0, len(names), code), [*names, "?"]),
            "kernel": labels(code, names),
            "shape_key": labels(code, keys),
            "request": nullable(request),
            "cold": launches["span"] > 0,
        }
        return table("host", columns, n)

    @cached_property
    def _shape_names(self) -> dict[int, tuple[str, str]]:
        """Shape id -> (kernel, key as text)."""
        kernels = {k["id"]: k["name"] for k in self._journal.records.get("kernel", [])}
        return {
            s["id"]: (kernels.get(s.get("kernel"), "?"), shape_text(s)) for s in self._journal.records.get("shape", [])
        }

    # ---- what is known of kernels, candidates and shapes

    def specializations(self) -> pa.Table:
        """One row per compiled variant that was asked for."""
        rows = [self._specialization(s) for s in self._journal.records.get("specialization", [])]
        return _rows("specializations", rows)

    def _specialization(self, said: Record) -> Record:
        jit = self._journal.spans.get(said.get("span", 0))
        kernel = self._kernels.get(jit.attrs.get("kernel")) if jit else None
        load = self._loads.get(kernel["id"]) if kernel else None
        changes = said.get("differs", {}).get("changes")
        return {
            "pid": self._journal.pid,
            "function": said["function"],
            "kernel": kernel["name"] if kernel else None,
            "start_ns": jit.start if jit else None,
            "file": said.get("file"),
            "line": said.get("line"),
            "hash": kernel["hash"] if kernel else None,
            "arguments": json.dumps(said.get("arguments")),
            "options": json.dumps(said.get("options")),
            "changes": json.dumps(changes) if changes else None,
            "cache_hit": jit.attrs.get("cache_hit") if jit else None,
            "registers": load.attrs.get("registers") if load else None,
            "spills": load.attrs.get("spills") if load else None,
            "shared_bytes": kernel.get("shared_bytes") if kernel else None,
            "binary_bytes": kernel.get("binary_bytes") if kernel else None,
        }

    @cached_property
    def _kernels(self) -> dict[Any, Record]:
        return {k["id"]: k for k in self._journal.records.get("kernel", [])}

    @cached_property
    def _loads(self) -> dict[Any, Span]:
        """First load of each kernel."""
        return {s.attrs.get("kernel"): s for s in reversed(self._spans) if s.kind == "load"}

    @cached_property
    def _timed(self) -> list[Span]:
        return [s for s in self._spans if s.kind == "candidate"]

    def candidates(self) -> pa.Table:
        """One row per candidate that was timed, failed ones included."""
        launched = np.bincount(np.maximum(self._launches["span"], 0)) if len(self._launches["span"]) else np.zeros(1)
        return _rows("candidates", [self._candidate(s, launched) for s in self._timed])

    def _candidate(self, span: Span, launched: np.ndarray) -> Record:
        times = span.attrs.get("timings_ms")
        search = next((s for s in self._around(span) if s.kind == "autotune"), None)
        won = bool(search and search.attrs.get("config") and search.attrs["config"] == span.attrs.get("config"))
        return {
            "start_ns": span.start,
            "end_ns": self._end(span),
            "thread": self._tids.index(span.tid),
            "kernel": span.name,
            "config": span.attrs.get("text") or json.dumps(span.attrs.get("config")),
            "basis": "recorded",
            "launches": int(launched[span.id]) if span.id < len(launched) else 0,
            "graph_compile": False,
            "median_ns": round(times[0] * _MS) if times and np.isfinite(times[0]) else None,
            "winner": won,
            "error": span.attrs.get("failed") or span.error,
        }

    def _around(self, span: Span) -> Iterator[Span]:
        """Spans around a span, nearest first."""
        above = self._journal.spans.get(span.parent)
        while above is not None:
            yield above
            above = self._journal.spans.get(above.parent)

    def compiles(self) -> pa.Table:
        """One row per first use of a compiled variant: its compile or lookup, and the load that followed."""
        return _rows("compiles", [self._compile(s) for s in self._spans if s.kind == "jit"])

    def _compile(self, jit: Span) -> Record:
        load = self._loads.get(jit.attrs.get("kernel"))
        load = load if load and load.start >= jit.start else None
        cache = self._inside(jit, "cache")
        build = self._inside(load, "launcher_build") if load else 0
        place = {s.id: i for i, s in enumerate(self._timed)}
        return {
            "start_ns": jit.start,
            "end_ns": self._end(load or jit),
            "thread": self._tids.index(jit.tid),
            "kernel": jit.name,
            "basis": "recorded",
            "cache_hit": jit.attrs.get("cache_hit"),
            "graph_compile": False,
            "candidate": next((place[s.id] for s in self._around(jit) if s.id in place), None),
            "loads": 1 if load else 0,
            "compile_ns": self._end(jit) - jit.start - cache,
            "cache_ns": cache,
            "launcher_build_ns": build,
            "module_load_ns": self._end(load) - load.start - build if load else 0,
        }

    def _inside(self, span: Span, kind: str) -> int:
        """Summed time of the spans of a kind right inside a span, ns."""
        return sum(self._end(s) - s.start for s in self._spans if s.parent == span.id and s.kind == kind)

    def shapes(self) -> pa.Table:
        """One row per shape key, with its launches."""
        used, cold = self._launches["shape"], self._launches["span"] > 0
        size = max([*self._shape_names, *used.tolist(), 0]) + 1
        times = {s["id"]: s.get("t_ns") for s in self._journal.records.get("shape", [])}
        count, cold_count = np.bincount(used, minlength=size), np.bincount(used[cold], minlength=size)
        rows = [
            {"pid": self._journal.pid, "id": i, "kernel": kernel, "key": key, "start_ns": times[i],
             "launches": int(count[i]), "cold_launches": int(cold_count[i])}
            for i, (kernel, key) in self._shape_names.items()
        ]  # fmt: skip
        return _rows("shapes", rows)


def shape_text(said: Record) -> str:
    """A shape key as one line: the grid, then each argument as dtype[shape] or its value."""
    if "grid" not in said:
        return "(other launches)"
    parts = [f"grid {'x'.join(map(str, said['grid']))}"]
    for name, value in said.get("args", {}).items():
        if isinstance(value, dict) and "dtype" in value:
            parts.append(f"{name} {value['dtype']}{value.get('shape')}")
        else:
            parts.append(f"{name}={value}")
    return " ".join(parts)


def _look_up(ids: np.ndarray, known: dict[int, tuple[str, str]]) -> np.ndarray:
    """Place of each id in `known`, -1 where it is not there."""
    place = np.full(max([*known, int(ids.max(initial=0)), 0]) + 1, -1, np.int32)
    for i, key in enumerate(known):
        place[key] = i
    return place[ids] if len(ids) else np.zeros(0, np.int32)


def _rows(name: str, rows: list[Record]) -> pa.Table:
    return table(name, {c: [row[c] for row in rows] for c in (rows[0] if rows else ())}, len(rows))
