"""Who asked for something cold: the request, the line of the program, and whether start-up was over by then."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from tprof.align.ranges import open_at, request_rows
from tprof.analyze.first_uses import thread_label
from tprof.analyze.rows import recorded_spans
from tprof.model import NULL, codes, ints

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tprof.analyze.result import Row
    from tprof.model import Trace


class Asked:
    """Looks up who asked.

    Args:
        trace: where.
        ranges: globs of the ranges that are requests; empty for the default names.
    """

    def __init__(self, trace: Trace, ranges: Sequence[str] = ()) -> None:
        self._trace = trace
        self._told = {
            (s["thread"], s["start_ns"]): s for s in recorded_spans(trace, "jit", "autotune", "graph_compile")
        }
        self._waits = recorded_spans(trace, "compile_wait")
        self._process = ints(trace.threads, "process")
        self._parents = _parents(trace)
        ready = [row for row in trace.startup.to_pylist() if row["kind"] == "ready"]
        self._ready = {row["process"]: row["start_ns"] for row in reversed(ready)}
        self._requests = request_rows(trace, ranges)
        self._name, self._names = codes(trace.host, "name")

    def of(self, thread: int, start_ns: int, end_ns: int) -> Row:
        """Of a cold stretch on a thread.

        Returns:
            request and request_id: as the program names them; of a compile worker those of who waited for it.
            waited_by: the thread that waited for this compile worker meanwhile, if any.
            asked_by: file, line and function of the innermost frame of the program, where recorded; stack: up to three.
            after_ready: whether its process had said that it is ready; None where it never did.
        """
        span = self._told.get((thread, start_ns), {})
        stack = span.get("attrs", {}).get("caller") or []
        wait = None if span.get("request") is not None else self._wait(thread, start_ns, end_ns)
        row = (wait or span).get("request")
        ready = next((self._ready[p] for p in self._line(thread) if p in self._ready), None)
        return {
            **self._request(self._around(thread, start_ns) if row is None else row),
            "waited_by": thread_label(self._trace, wait["thread"]) if wait else None,
            "asked_by": stack[0] if stack else None,
            "stack": stack,
            "after_ready": None if ready is None else start_ns >= ready,
        }

    def _request(self, row: int | None) -> Row:
        if row is None:
            return {"request": None, "request_id": None}
        said = self._trace.host["attrs"][row].as_py()
        return {
            "request": self._names[self._name[row]],
            "request_id": json.loads(said).get("request_id") if said else None,
        }

    def _around(self, thread: int, instant: int) -> int | None:
        """The request range that is open on a thread, the innermost one."""
        row = int(open_at(self._trace.host, self._requests, np.array([instant]), np.array([thread]))[0])
        return None if row == NULL else row

    def _line(self, thread: int) -> Iterator[int]:
        """The process of a thread, then its parents, nearest first."""
        process, seen = int(self._process[thread]), set()
        while process != NULL and process not in seen:
            seen.add(process)
            yield process
            process = self._parents.get(process, NULL)

    def _wait(self, thread: int, start_ns: int, end_ns: int) -> Row | None:
        """Of a compile worker: the wait of the process it works for that overlaps most."""
        parents = list(self._line(thread))[1:]
        waits = [w for w in self._waits if int(self._process[w["thread"]]) in parents]
        shared = [(min(w["end_ns"], end_ns) - max(w["start_ns"], start_ns), i) for i, w in enumerate(waits)]
        most, place = max(shared, default=(0, 0))
        return waits[place] if most > 0 else None


def _parents(trace: Trace) -> dict[int, int]:
    """Row of each process -> row of the process that started it; of equal pids (two runs) the nearest row."""
    rows = trace.processes.to_pylist()
    by_pid: dict[tuple[str, int], list[int]] = {}
    for i, row in enumerate(rows):
        by_pid.setdefault((row["host"], row["pid"]), []).append(i)
    return {
        i: min(found, key=lambda j: abs(j - i))
        for i, row in enumerate(rows)
        if (found := by_pid.get((row["host"], row["parent_pid"] or 0)))
    }
