"""Why a disk cache that was there missed: what an earlier process had compiled, compiled again, and what differed.

Triton names a compiled kernel by a hash over its own build, the kernel's source with all that it uses, arguments,
options, target, the version of the assembler, and some environment variables. Two processes that compiled a function
for the same arguments differ in one of the others, or one of them did not find what the other stored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.result import Row

_FOLDER: Final = "TRITON_CACHE_DIR"
_DEFAULT: Final = "~/.triton/cache"
_WORDS: Final = {
    "triton": "Triton build",
    "source": "kernel source",  # with all that the kernel uses
    "backend": "assembler",
    "target": "GPU",
}


@dataclass(frozen=True)
class _Compiled:
    """A variant that was compiled or found on disk."""

    process: int
    start_ns: int
    end_ns: int
    kernel: str
    hash: str | None
    options: dict[str, object]
    parts: dict[str, object] = field(default_factory=dict)  # of the key; empty where not recorded


def cache_miss_rows(attribution: Attribution, window: tuple[int, int]) -> list[Row]:
    """Compiles of the window that an earlier process of the trace had done, by processes and what differed.

    Returns:
        Rows of at_ns (of the first), kernel, part (what differs), before, after, variants (how many), compile_ns
        (summed), pid, earlier_pid: largest first. A part `unattributed` was not recorded.
    """
    found: dict[tuple[object, ...], Row] = {}
    pids = attribution.trace.processes["pid"].to_pylist()
    for mine, theirs in _pairs(attribution, window):
        for part, before, after in _differences(attribution, theirs, mine):
            key = (mine.kernel, mine.process, theirs.process, part, before, after)
            row = found.setdefault(key, {
                "at_ns": mine.start_ns - attribution.extent[0], "kernel": mine.kernel, "part": part, "before": before,
                "after": after, "variants": 0, "compile_ns": 0, "pid": pids[mine.process],
                "earlier_pid": pids[theirs.process],
            })  # fmt: skip
            row["variants"] += 1
            row["compile_ns"] += mine.end_ns - mine.start_ns
    return sorted(found.values(), key=lambda row: -row["compile_ns"])


def _pairs(attribution: Attribution, window: tuple[int, int]) -> list[tuple[_Compiled, _Compiled]]:
    """(missed, most similar one that another process compiled or found before), for the same function and arguments."""
    seen: dict[tuple[str, str], list[_Compiled]] = {}
    pairs = []
    rows = sorted(_compiled(attribution), key=lambda pair: pair[0]["start_ns"])
    for row, mine in rows:
        known = seen.setdefault((row["function"], row["arguments"]), [])
        others = [c for c in known if c.process != mine.process]
        if row["cache_hit"] is False and others and window[0] <= mine.start_ns <= window[1]:
            pairs.append((mine, min(reversed(others), key=lambda c: len(_unlike(attribution, c, mine)))))
        known.append(mine)
    return pairs


def _compiled(attribution: Attribution) -> list[tuple[Row, _Compiled]]:
    trace = attribution.trace
    ends = dict(zip(trace.compiles["specialization"].to_pylist(), trace.compiles["end_ns"].to_pylist(), strict=True))
    return [
        (
            row,
            _Compiled(
                row["process"], row["start_ns"], ends.get(i, row["start_ns"]),
                row["kernel"] or row["function"].rsplit(".", 1)[-1], row["hash"],
                json.loads(row["options"] or "null") or {}, json.loads(row["key_parts"] or "{}"),
            ),
        )
        for i, row in enumerate(trace.specializations.to_pylist())
        if row["start_ns"] is not None
    ]  # fmt: skip


def _differences(attribution: Attribution, before: _Compiled, after: _Compiled) -> list[tuple[str, str, str]]:
    """(part, before, after) of the key; where the key is the same, why its entry was not found."""
    if before.hash is not None and before.hash == after.hash:
        return [_lost(attribution, before, after)]
    return _unlike(attribution, before, after) or [("unattributed", "not recorded", "not recorded")]


def _unlike(attribution: Attribution, before: _Compiled, after: _Compiled) -> list[tuple[str, str, str]]:
    """Parts of two keys that both are known and differ."""
    found = [(f"option {name}", str(before.options.get(name)), str(value))
             for name, value in after.options.items() if before.options.get(name) != value]  # fmt: skip
    for part, value in after.parts.items():
        old = before.parts.get(part)
        if part == "environment" and isinstance(value, dict) and isinstance(old, dict):
            names = sorted(name for name in {*old, *value} if old.get(name) != value.get(name))
            found += [(f"environment {n}", str(old.get(n, "unset")), str(value.get(n, "unset"))) for n in names]
        elif old is not None and value is not None and old != value:
            found.append((_WORDS.get(part, part), *_shown(attribution, part, (before, old), (after, value))))
    return found


def _shown(attribution: Attribution, part: str, *sides: tuple[_Compiled, object]) -> tuple[str, str]:
    """Both values as a person reads them: hashes by their first digits, and with the version where it is Triton's."""
    versions = [json.loads(v or "{}") for v in attribution.trace.processes["versions"].to_pylist()]
    texts = [str(value)[:12] if part in ("triton", "source") else str(value) for _, value in sides]
    if part == "triton":
        texts = [f"{versions[c.process].get('triton')} ({t})" for (c, _), t in zip(sides, texts, strict=True)]
    return texts[0], texts[1]


def _lost(attribution: Attribution, before: _Compiled, after: _Compiled) -> tuple[str, str, str]:
    """Why an entry that was stored under the same key was not found."""
    if before.end_ns > after.start_ns:
        return "both at once", "not stored yet", "compiled too"
    environments = [json.loads(e or "{}") for e in attribution.trace.processes["environment"].to_pylist()]
    old, new = (environments[c.process].get(_FOLDER, _DEFAULT) for c in (before, after))
    if old != new:
        return "cache folder", old, new
    return "cache entry", f"stored in {old}", "gone"
