"""The words of the screen: what each phase and purpose is called, what it means in one line, its colour and letter.

The one place for colours: a fixed one per phase and purpose, the same in terminal, report and app. Cold phases are warm
colours (vermilion to yellow and pink), warm phases blues, greens and greys, so that the two families stay apart for
every common kind of colour-blindness; within a family neighbours differ in lightness. All were chosen to have a
contrast of at least 2 against white and against #14171c.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tprof.present.names import clean


@dataclass(frozen=True, slots=True)
class Word:
    """How a phase or purpose is shown.

    Attributes:
        letter: stands for it in a bar without colours; upper case is device work and cold start.
        colour: its fixed colour.
        meaning: in one line.
        label: what it is called, if not as in the trace.
    """

    letter: str
    colour: str
    meaning: str
    label: str = ""


WORDS: Final[dict[str, Word]] = {
    "compile": Word("C", "#d9480f", "Triton turns a kernel's source into machine code"),
    "cache": Word("D", "#b08968", "looking up and storing compiled kernels on disk"),
    "launcher_build": Word("B", "#f08c00", "building the small C program that launches a kernel"),
    "module_load": Word("M", "#e0b000", "loading machine code onto the device"),
    "autotune": Word("A", "#d6498f", "timing candidate configurations of a kernel"),
    "graph_compile": Word("G", "#c0394b", "Dynamo and Inductor (torch.compile) at work"),
    "graph_capture": Word("P", "#e58a7b", "recording a CUDA graph"),
    "init": Word("I", "#a3742c", "creating the CUDA context and library handles, first touch"),
    "launch": Word("l", "#2b7de0", "inside the call that enqueues work"),
    "sync": Word("s", "#45a9e6", "waiting for the device"),
    "memory": Word("m", "#0f9d94", "allocating and copying, as the host sees it"),
    "collective": Word("c", "#5c63d8", "communication between ranks"),
    "framework": Word("f", "#6f86b5", "operator code on the host", "framework code"),
    "host": Word("h", "#8a99ab", "other code between launches", "host code"),
    "unattributed": Word(".", "#a9a9a9", "the trace does not say; never guessed"),
    "turnaround": Word("t", "#4fb3bf", "back to back on one stream"),
    "dependency": Word("d", "#3f8f6b", "enqueued in time, waited for something else"),
    "graph": Word("g", "#2f9e5f", "between the kernels of one graph launch", "inside a graph"),
    "work": Word("W", "#37a03c", "the workload's own device work"),
    "setup": Word("S", "#a69b2b", "constants and first-use work of a compiler or library"),
    "warmup": Word("U", "#c9a227", "launched to warm up"),
    "capture": Word("K", "#e58a7b", "ran while a graph was captured"),
    "tuning": Word("T", "#b565d0", "benchmark repetitions of autotuning and their cache flushes"),
}
OR_LOAD: Final = "compile or load"
MEANING: Final = {word: shown.meaning for word, shown in WORDS.items()} | {
    OR_LOAD: "compiling, building a launcher or loading: this trace cannot tell them apart"
}
PRODUCER: Final[dict[str, str]] = {"nsight": "Nsight Systems", "torch": "torch.profiler", "tprof": "tprof"}


def label(word: str, *, or_load: bool = False) -> str:
    """A phase or purpose as people say it; `or_load` where a trace cannot tell compiling from loading."""
    if or_load and word == "compile":
        return OR_LOAD
    return (WORDS[word].label or word.replace("_", " ")) if word in WORDS else clean(word)


def part_label(part: str, *, or_load: bool = False) -> str:
    """A part of the wall clock: `busy.tuning` -> `busy: tuning`, `lead.init` -> `lead: init`; `import a.b` stays."""
    where, _, word = part.rpartition(".")
    if where and word in WORDS:
        return f"{where}: {label(word, or_load=or_load)}"
    return label(part, or_load=or_load)


def meaning(part: str) -> str:
    """What a part of the wall clock, a phase or a purpose means, in one line; empty for unknown words."""
    return MEANING.get(part.rpartition(".")[2], "")


def letter(part: str) -> str:
    """What stands for a part in a bar without colours."""
    known = WORDS.get(part.rpartition(".")[2])
    return known.letter if known else "?"


def sentence(text: str) -> str:
    """Text of a finding with the words of the screen: `graph_compile` -> `graph compile`."""
    line = clean(text)
    for word in WORDS:
        if "_" in word:
            line = line.replace(word, label(word))
    return line
