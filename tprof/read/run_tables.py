"""Tables of one recorded process: spans and launches as host rows, and what is known of each kernel and candidate."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from tprof.model import labels, nullable, table
from tprof.read.run_cold import ColdRows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tprof.read.run_journal import Journal, Record, Span

_KIND: Final = {"request": "request", "serve": "serve"}  # other spans without a phase are user ranges
_ABOUT: Final = ("jit", "load", "autotune", "candidate")  # spans whose name is a kernel's
_SAYING: Final = ("mark", "recompile", "graph_cache", "selection")  # records of an instant on a thread


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
        said = [r["tid"] for kind in _SAYING for r in self._journal.records.get(kind, [])]
        used = [*named, *(s.tid for s in self._spans), *np.unique(self._launches["tid"]).tolist(), *said]
        return list(dict.fromkeys(used))

    def threads(self) -> pa.Table:
        """One row per thread that did anything."""
        names = {r["tid"]: r.get("name") for r in self._journal.records.get("thread", [])}
        host, pid = self._journal.process.get("host", ""), self._journal.pid
        columns = {
            "host": host,
            "pid": pid,
            "tid": self._tids,
            "name": [names.get(t) for t in self._tids],
            "process": 0,
        }
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
        request = _look_up(launches["request"], self._row)
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

    # ---- what is known of kernels, searches and shapes

    def cold(self) -> dict[str, pa.Table]:
        """Tables of what was cold, by their names."""
        span, count = np.unique(self._launches["span"], return_counts=True)
        launched = dict(zip(span.tolist(), count.tolist(), strict=True))
        thread = {tid: i for i, tid in enumerate(self._tids)}
        rows = ColdRows(self._journal, self._spans, thread, launched)
        made = {
            "candidates": rows.candidates(),
            "compiles": rows.compiles(),
            "specializations": rows.specializations(),
            "graph_events": rows.graph_events(),
            "startup": rows.startup(),
        }
        return {name: _rows(name, found) for name, found in made.items()}

    def shapes(self) -> pa.Table:
        """One row per shape key, with its launches."""
        used, cold = _look_up(self._launches["shape"], self._shape_names), self._launches["span"] > 0
        times = {s["id"]: s.get("t_ns") for s in self._journal.records.get("shape", [])}
        size = len(times)
        count, cold_count = (np.bincount(u[u >= 0], minlength=size).tolist() for u in (used, used[cold]))
        rows = [
            {"pid": self._journal.pid, "id": i, "kernel": kernel, "key": key, "start_ns": times[i],
             "launches": count[place], "cold_launches": cold_count[place]}
            for place, (i, (kernel, key)) in enumerate(self._shape_names.items())
        ]  # fmt: skip
        return _rows("shape_keys", rows)


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


def _look_up(ids: np.ndarray, known: Iterable[int]) -> np.ndarray:
    """Place of each id among the known ones, -1 where it is none of them; ids may be any numbers."""
    keys = np.array([*known], np.int64)
    if not len(keys):
        return np.full(len(ids), -1)
    order = np.argsort(keys)
    place = order[np.minimum(np.searchsorted(keys, ids, sorter=order), len(keys) - 1)]
    return np.where(keys[place] == ids, place, -1)


def _rows(name: str, rows: list[Record]) -> pa.Table:
    return table(name, {c: [row[c] for row in rows] for c in (rows[0] if rows else ())}, len(rows))
