"""Why a disk cache that was there missed: what an earlier process had compiled, compiled again, and what differed.

Triton names a compiled kernel by a hash over its own build, the kernel's source with all that it uses, arguments,
options, target, the version of the assembler, and some environment variables. Two processes that compiled a function
for the same arguments differ in one of the others, or one of them did not find what the other stored.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from tprof.analyze.first_uses import kernel_of
from tprof.analyze.rows import grouped

if TYPE_CHECKING:
    from tprof.analyze.attribution import Attribution
    from tprof.analyze.result import Row
    from tprof.model import Trace

_FOLDER: Final = "TRITON_CACHE_DIR"
_DEFAULT: Final = "~/.triton/cache"
_ORDERED: Final = ("3.5.", "3.6.", "3.7.")  # versions of Triton where what was hashed before counts
_WORDS: Final = {
    "triton": "Triton build",
    "source": "kernel source",  # with all that the kernel uses
    "backend": "assembler",
    "target": "GPU",
}


def cache_miss_rows(attribution: Attribution, window: tuple[int, int]) -> list[Row]:
    """Compiles of the window that an earlier process of the trace had done, by processes and what differed.

    Returns:
        Rows of at_ns (of the first), kernel, part (what differs), before, after, variants (how many), compile_ns
        (summed), pid, earlier_pid: largest first. A part `unattributed` was not recorded.
    """
    found: dict[tuple[object, ...], Row] = {}
    pids = attribution.trace.processes["pid"].to_pylist()
    for mine, theirs in _pairs(attribution.trace, window):
        for part, before, after in _differences(attribution.trace, theirs, mine):
            row = found.setdefault((mine["kernel"], mine["process"], theirs["process"], part, before, after), {
                "at_ns": mine["start_ns"] - attribution.extent[0], "kernel": mine["kernel"], "part": part,
                "before": before, "after": after, "variants": 0, "compile_ns": 0, "pid": pids[mine["process"]],
                "earlier_pid": pids[theirs["process"]],
            })  # fmt: skip
            row["variants"] += 1
            row["compile_ns"] += mine["end_ns"] - mine["start_ns"]
    return sorted(found.values(), key=lambda row: -row["compile_ns"])


def _pairs(trace: Trace, window: tuple[int, int]) -> list[tuple[Row, Row]]:
    """(missed, most similar one that another process compiled or found before), for the same function and arguments."""
    pairs = []
    for known in grouped(_variants(trace), "function", "arguments").values():
        for i, mine in enumerate(known):
            others = [c for c in known[:i] if c["process"] != mine["process"]]
            if mine["cache_hit"] is False and others and window[0] <= mine["start_ns"] <= window[1]:
                pairs.append((mine, min(reversed(others), key=lambda c: len(_unlike(c, mine)))))
    return sorted(pairs, key=lambda pair: pair[0]["start_ns"])


def _variants(trace: Trace) -> list[Row]:
    """Variants that were compiled or found on disk, in time order: with their end, Triton's version, and their key."""
    versions = [json.loads(v or "{}").get("triton") for v in trace.processes["versions"].to_pylist()]
    ends = dict(zip(trace.compiles["specialization"].to_pylist(), trace.compiles["end_ns"].to_pylist(), strict=True))
    rows = [
        row
        | {"kernel": kernel_of(row), "end_ns": ends.get(i, row["start_ns"]), "triton": str(versions[row["process"]])}
        | {"options": json.loads(row["options"] or "null") or {}, "parts": json.loads(row["key_parts"] or "{}")}
        for i, row in enumerate(trace.specializations.to_pylist())
        if row["start_ns"] is not None
    ]
    return sorted(rows, key=lambda row: row["start_ns"])


def _differences(trace: Trace, before: Row, after: Row) -> list[tuple[str, str, str]]:
    """(part, before, after) of the key; where the key is the same, why its entry was not found."""
    if before["hash"] is not None and before["hash"] == after["hash"]:
        return [_lost(trace, before, after)]
    return _unlike(before, after) or [("unattributed", "not recorded", "not recorded")]


def _unlike(before: Row, after: Row) -> list[tuple[str, str, str]]:
    """Parts of two keys that both are known and differ."""
    found = [(f"option {name}", str(before["options"].get(name)), str(value))
             for name, value in after["options"].items() if before["options"].get(name) != value]  # fmt: skip
    for part, value in after["parts"].items():
        old = before["parts"].get(part)
        if part == "environment" and isinstance(value, dict) and isinstance(old, dict):
            names = sorted(name for name in {*old, *value} if old.get(name) != value.get(name))
            found += [(f"environment {n}", str(old.get(n, "unset")), str(value.get(n, "unset"))) for n in names]
        elif None not in (old, value) and old != value and (word := _word(part, before, after)):
            found.append((word, *_shown(part, (before, old), (after, value))))
    return found


def _word(part: str, before: Row, after: Row) -> str | None:
    """What a part that differs is called; None where another part says it better.

    Triton's hash of a source holds the lines on which functions begin and, from 3.5 to 3.7, depends on what was hashed
    before; `fingerprint` does neither, and is no part of the key.
    """
    old, new = before["parts"], after["parts"]
    same = bool(new.get("fingerprint")) and old.get("fingerprint") == new["fingerprint"]
    if part in ("fingerprint", "lines"):
        return "lines in the file" if part == "lines" and same else None
    if part == "source" and same and old.get("lines") != new.get("lines"):
        return None
    if part == "source" and same and after["triton"].startswith(_ORDERED):
        return "order of first uses (old Triton)"
    return _WORDS.get(part, part)


def _shown(part: str, *sides: tuple[Row, object]) -> tuple[str, str]:
    """Both values as a person reads them: hashes by their first digits, and with the version where it is Triton's."""
    texts = [str(value)[:12] if part in ("triton", "source") else str(value) for _, value in sides]
    if isinstance(sides[0][1], dict) and isinstance(sides[1][1], dict):
        moved = next((name for name, line in sides[1][1].items() if sides[0][1].get(name) != line), "?")
        texts = [f"{moved}:{lines.get(moved, '?')}" for _, lines in sides if isinstance(lines, dict)]
    if part == "triton":
        texts = [f"{c['triton']} ({t})" for (c, _), t in zip(sides, texts, strict=True)]
    return texts[0], texts[1]


def _lost(trace: Trace, before: Row, after: Row) -> tuple[str, str, str]:
    """Why an entry that was stored under the same key was not found."""
    if before["end_ns"] > after["start_ns"]:
        return "both at once", "not stored yet", "compiled too"
    environments = [json.loads(e or "{}") for e in trace.processes["environment"].to_pylist()]
    old, new = (environments[c["process"]].get(_FOLDER, _DEFAULT) for c in (before, after))
    if old != new:
        return "cache folder", old, new
    return "cache entry", f"stored in {old}", "gone"
