"""Cold spans as tprof's recorder wrote them, with what it said of each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tprof.align.calls import is_kind

if TYPE_CHECKING:
    from tprof.analyze.result import Row
    from tprof.model import Trace

_COLUMNS = ["start_ns", "end_ns", "thread", "pid", "name", "request", "attrs"]


def recorded_spans(trace: Trace, *kinds: str) -> list[Row]:
    """Recorded cold spans of some kinds (`jit`, `cache`, `autotune` …, docs/run-directory.md), else all, in row order.

    Returns:
        start_ns, end_ns, thread, pid, name, request (row of `host`), kind, and what else the recorder said as `attrs`.
    """
    rows = trace.host.filter(is_kind(trace.host, "cold")).select(_COLUMNS).to_pylist()
    said = [{**row, "attrs": json.loads(row["attrs"] or "{}")} for row in rows]
    return [
        {**row, "kind": kind} for row in said if (kind := row["attrs"].get("kind")) and (not kinds or kind in kinds)
    ]
