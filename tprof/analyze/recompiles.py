"""What Dynamo and Inductor said of graphs: compiled again and why, found in a cache or not, chosen among kernels."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tprof.analyze.asked import Asked
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.result import Row

_COMPILE_ID: Final = re.compile(r"^\d+/\d+: ")  # of the earlier compile whose guard failed
_KINDS: Final = {"recompile": "recompiles", "graph_cache": "graph_caches", "selection": "selections"}


def graph_rows(attribution: Attribution, window: tuple[int, int], asked: Asked) -> dict[str, list[Row]]:
    """Rows of `recompiles`, `graph_caches` and `selections` inside the window, in time order; empty unrecorded.

    A recompile's `guard` is the first that failed, `guards` all of them; `wall_ns` is that of the recorded span in
    which it was found out, its compile. A cache's `outcome` is hit, miss or bypass, its `reason` and `time_saved_ns`
    what torch says of it.
    """
    trace = attribution.trace
    found: dict[str, list[Row]] = {name: [] for name in _KINDS.values()}
    for row in trace.graph_events.sort_by("start_ns").to_pylist():
        if not window[0] <= row["start_ns"] <= window[1]:
            continue
        span = trace.host.slice(row["span"], 1).to_pylist()[0] if row["span"] is not None else None
        begin = span["start_ns"] if span else row["start_ns"]
        end = span["end_ns"] if span else row["start_ns"]
        found[_KINDS[row["kind"]]].append({
            "at_ns": row["start_ns"] - attribution.extent[0],
            **_facts(row, json.loads(row["attrs"])),
            "wall_ns": end - begin if span else None,
            **asked.of(row["thread"], begin, end),
        })  # fmt: skip
    return found


def _facts(row: Row, said: Row) -> Row:
    if row["kind"] == "recompile":
        guards = [_COMPILE_ID.sub("", str(reason)) for reason in said.get("reasons", [])]
        place = f"{said.get('file')}:{said.get('line')}"
        return {"function": row["name"], "guard": guards[0] if guards else None, "guards": guards, "source": place}
    if row["kind"] == "graph_cache":
        return {"cache": row["name"], "outcome": row["outcome"]} | {
            key: said.get(key) for key in ("key", "reason", "time_saved_ns")
        }
    choices = said.get("choices", [])
    return {"operator": row["name"], "best": row["outcome"], "inputs": said.get("inputs", []), "choices": choices}
