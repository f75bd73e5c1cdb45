"""What `tprof top` and SIGUSR1 print: a look at a run as plain text, one line per busy thread."""

from __future__ import annotations

from typing import Any, Final

Record = dict[str, Any]
WORDS: Final = {
    "jit": "compiling", "stage": "stage", "cache": "cache file", "load": "loading", "launcher_build": "launcher of",
    "autotune": "tuning", "prune": "pruning", "autotune_cache": "tuning cache of", "candidate": "candidate of",
    "graph_compile": "compiling graph:", "compile_wait": "waiting for", "graph_capture": "capturing graph",
}  # fmt: skip
_STATES: Final = {"killed": "KILLED IN ", "silent": "no sign of life: ", "unknown": "on another machine: "}


def lines(look: Record, name: str = "") -> list[str]:
    """A look at a run (`Watch.look`) as lines; `name` is what it is called."""
    states = [row["state"] for row in look["processes"]]
    alive = sum(state in {"running", "silent"} for state in states)
    head = f"{plain(name)}: " if name else ""
    text = [f"{head}{count(len(states), 'process', 'es')}, {alive} running; {done(look['done'])}"]
    if phases := sorted(look["phases_ns"].items(), key=lambda item: -item[1]):
        text.append("done so far: " + ", ".join(f"{plain(phase)} {seconds(ns)}" for phase, ns in phases))
    if not look["now"]:
        text.append("now: nothing is being compiled or tuned")
    return text + [_thread(row) for row in look["now"]]


def done(counts: Record) -> str:
    """The counts in words."""
    failed = f" ({counts['failed']} failed)" if counts["failed"] else ""
    hits = f", {count(counts['disk_hits'], 'disk hit')}" if counts["disk_hits"] else ""
    candidates = f"{count(counts['candidates'], 'candidate')}{failed}"
    return f"{count(counts['compiles'], 'compile')}{hits}, {candidates}, {count(counts['launches'], 'launch', 'es')}"


def _thread(row: Record) -> str:
    what = " > ".join(span(what) for what in row["what"])
    request = f", for request {row['request']} {row['request_id'] or ''}".rstrip() if row["request"] else ""
    whole = f" of {seconds(row['since_ns'])}" if len(row["what"]) > 1 else ""
    where = f"pid {row['pid']} thread {row['tid']} {row['thread']}".rstrip()
    return f"{seconds(row['for_ns'])}{whole}  {plain(where)}: {_STATES.get(row['state'], '')}{what}{plain(request)}"


def span(what: Record) -> str:
    """One span of `Watch.look`'s `what`."""
    detail = f" [{what['detail']}]" if what["detail"] else ""
    return plain(f"{WORDS.get(what['kind'], what['kind'])} {what['name']}{detail}")


def count(number: int, word: str, plural: str = "s") -> str:
    """`1 launch`, `2 launches`."""
    return f"{number} {word if number == 1 else word + plural}"


def seconds(ns: int) -> str:
    """A duration to a tenth of a second, or in milliseconds below one."""
    return f"{ns / 1e9:.1f} s" if ns >= 1_000_000_000 else f"{ns / 1e6:.0f} ms"


def plain(text: object) -> str:
    """One line that a terminal takes as text."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in " ".join(str(text).split()))
