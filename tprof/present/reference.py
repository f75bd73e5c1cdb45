"""What every column of an exported table means: its unit, its denominator, and where nulls may stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tprof.events import TABLES
from tprof.present import columns, views, words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tprof.analyze import Result
    from tprof.events import Column

_HEAD: Final = """# Tables and columns

One file per table. Times are integer nanoseconds on the trace's own clock; a null means "not known" and never becomes a
zero. Every `_ns` is nanoseconds, `_bytes` bytes, `_share` a fraction from 0 to 1 of the denominator that its row names.
"""
_WHOLE: Final = {
    "of_wall_share": "the window", "of_window_share": "the window", "of_where_share": "lead, idle or tail: `where`",
    "of_device_share": "device time of all kernels, summed", "cold_share": "`wall_ns` of the request",
    "share": "what `of` names", "of_gaps_share": "the time of all gaps", "of_startup_share": "start-up",
    "of_calls_share": "calls of all buckets", "of_misses_share": "misses of all buckets",
    "margin_share": "the time of the next best", "occupancy_share": "warps that a multiprocessor holds",
    "of_kernel_share": "calls of the kernel", "hot_share": "calls of the kernel", "of_job_share": "the job",
    "exposed_share": "the job", "work_share": "`warm_ns`", "of_work_share": "device work", "of_warm_share": "`warm_ns`",
    "chained_share": "time of the operator", "top5_share": "calls of the operator",
    **{f"top{n}_share": "calls of the kernel" for n in (1, 2, 10, 20, 50)},
}  # fmt: skip
# What is computed, where the heading does not say it all; other columns are those of the trace, or named by a phase.
_MEANS: Final = {
    "wall_ns": "from begin to end", "at_ns": "begin, counted from the first event of the trace",
    "span_ns": "from the first to the last device event", "busy_ns": "union of the device events over all streams",
    "idle_ns": "span without busy", "sum_ns": "device events added up; overlaps count twice",
    "lead_ns": "from the window's begin to the first device event", "total_ns": "summed over the window",
    "tail_ns": "from the last device event to the window's end", "unlinked": "device events without a recorded launch",
    "overlaps": "device events that begin before an earlier one of their stream ended", "gap_ns": "length of the gap",
    "cold_ns": "time in cold phases", "cold_tax_ns": "the part in cold phases, and in waits while devices only tuned",
    "cold_exposed_ns": "the part of the cold tax during which no device worked",
    "tuning_device_ns": "device time of tuning, a union per device", "cost_ns": "time at stake; costs overlap",
    "calls": "executions", "p99_ns": "99th percentile of single executions, nearest rank",
    "first_call_ns": "from the first thing cold for the first call to the end of its launch call, on the host",
    "warm_p50_ns": "median launch call of those that were no miss, on the host",
    "warm_calls": "calls that were no miss", "warm_p99_ns": "99th percentile of the same",
    "first_device_ns": "the first execution that was work",
    "device_p50_ns": "median of the others", "device_p99_ns": "99th percentile of the others",
    "misses": "calls for which anything was cold", "request_misses": "misses that served a request",
    "tuning_calls": "repetitions of a benchmark", "calls_by_slice": "calls in each twelfth of the window",
    "of": "what the share is a part of", "part": "busy.PURPOSE, or idle, lead or tail and its phase",
}  # fmt: skip
_UNITS: Final = (("_ns", "ns"), ("share", "fraction"), ("_bytes", "bytes"), ("calls", "count"))


def page(tables: Mapping[str, tuple[Column, ...]], results: Mapping[str, tuple[Result, str]]) -> str:
    """The whole page, as Markdown.

    Args:
        tables: columns of the trace's tables, by file name.
        results: by file name, a result and the name of its table.
    """
    parts = [_HEAD, *(trace_table(name, said) for name, said in tables.items())]
    parts += [result_table(name, result, table) for name, (result, table) in results.items()]
    return "\n".join(parts)


def trace_table(name: str, said: tuple[Column, ...]) -> str:
    """One table of a trace: a row per column."""
    rows = [f"| {c.name} | {c.dtype} | {'yes' if c.nullable else 'no'} | {c.meaning} |" for c in said]
    return "\n".join([f"## {name}\n", "| column | type | null | meaning |", "|---|---|---|---|", *rows, ""])


def result_table(name: str, result: Result, table: str) -> str:
    """One table of an analysis: what the screen calls each column, its unit and what it is a part of."""
    view = views.view(result, table)
    headings = {c.key: c.heading for c in view.columns}
    keys = dict.fromkeys([*(k for row in result.tables[table] for k in row), *headings])
    rows = [f"| {key} | {_meaning(key, headings)} | {unit(key)} | {_whole(key)} |" for key in keys]
    head = [
        f"## {name}\n",
        f"{view.heading}. {view.caption}\n",
        "| column | meaning | unit | of |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


def _meaning(key: str, headings: Mapping[str, str]) -> str:
    phase = key.removeprefix("device_").removesuffix("_ns")
    known = next((c.meaning for said in TABLES.values() for c in said if c.name == key), None)
    named = _MEANS.get(key) or (words.meaning(phase) if key.endswith("_ns") else None) or known
    return named or headings.get(key) or key.replace("_", " ")


def unit(key: str) -> str:
    """Unit of a column of a result, by its name."""
    known = next((word for suffix, word in _UNITS if key.endswith(suffix)), None)
    return known or ("count" if columns.Column(key, "").numeric else "")


def _whole(key: str) -> str:
    """Denominator of a share."""
    return _WHOLE.get(key, "see above") if key.endswith("share") else ""
