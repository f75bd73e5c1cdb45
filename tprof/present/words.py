"""The words of the screen: what each phase and purpose is called, and what it means in one line."""

from __future__ import annotations

from typing import Final

from tprof.present.names import clean

LABEL: Final[dict[str, str]] = {
    "launcher_build": "launcher build",
    "module_load": "module load",
    "graph_compile": "graph compile",
    "graph_capture": "graph capture",
    "framework": "framework code",
    "host": "host code",
    "unattributed": "unattributed",
    "graph": "inside a graph",
}
MEANING: Final[dict[str, str]] = {
    "compile": "Triton turns a kernel's source into machine code",
    "compile or load": "compiling, building a launcher or loading: this trace cannot tell them apart",
    "cache": "looking up and storing compiled kernels on disk",
    "launcher_build": "building the small C program that launches a kernel",
    "module_load": "loading machine code onto the device",
    "autotune": "timing candidate configurations of a kernel",
    "graph_compile": "Dynamo and Inductor (torch.compile) at work",
    "graph_capture": "recording a CUDA graph",
    "init": "creating the CUDA context and library handles, first touch",
    "launch": "inside the call that enqueues work",
    "sync": "waiting for the device",
    "memory": "allocating and copying, as the host sees it",
    "collective": "communication between ranks",
    "framework": "operator code on the host",
    "host": "other code between launches",
    "unattributed": "the trace does not say; never guessed",
    "turnaround": "back to back on one stream",
    "dependency": "enqueued in time, waited for something else",
    "graph": "between the kernels of one graph launch",
    "work": "the workload's own device work",
    "setup": "constants and first-use work of a compiler or library",
    "warmup": "launched to warm up",
    "capture": "ran while a graph was captured",
    "tuning": "benchmark repetitions of autotuning and their cache flushes",
}
PRODUCER: Final[dict[str, str]] = {"nsight": "Nsight Systems", "torch": "torch.profiler", "tprof": "tprof"}


def label(word: str, *, or_load: bool = False) -> str:
    """A phase or purpose as people say it; `or_load` where a trace cannot tell compiling from loading."""
    if or_load and word == "compile":
        return "compile or load"
    return LABEL.get(word, clean(word))


def part_label(part: str, *, or_load: bool = False) -> str:
    """A part of the wall clock: `busy.tuning` -> `busy: tuning`, `lead.init` -> `lead: init`."""
    where, _, word = part.rpartition(".")
    return f"{where}: {label(word, or_load=or_load)}" if where else label(word, or_load=or_load)


def meaning(part: str) -> str:
    """What a part of the wall clock, a phase or a purpose means, in one line; empty for unknown words."""
    return MEANING.get(part.rpartition(".")[2], "")


_LETTER: Final[dict[str, str]] = {
    "compile": "C", "cache": "D", "launcher_build": "B", "module_load": "M", "autotune": "A", "graph_compile": "G",
    "graph_capture": "P", "init": "I", "work": "W", "setup": "S", "warmup": "U", "capture": "K", "tuning": "T",
    "unattributed": ".", "launch": "l", "sync": "s", "memory": "m", "collective": "c", "framework": "f", "host": "h",
    "turnaround": "t", "dependency": "d", "graph": "g",
}  # fmt: skip


def letter(part: str) -> str:
    """What stands for a part in a bar without colours; upper case is device work and cold start."""
    return _LETTER.get(part.rpartition(".")[2], "?")


def sentence(text: str) -> str:
    """Text of a finding with the words of the screen: `graph_compile` -> `graph compile`."""
    line = clean(text)
    for word, said in LABEL.items():
        if "_" in word:
            line = line.replace(word, said)
    return line
