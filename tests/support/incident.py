"""The incident as a run directory: an attention kernel that is compiled and tuned in the first requests of each length.

Short contexts come often and are cold once; each long context is cold when it comes first, and takes over ten seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.runs import Writer, run_json

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
S = 1_000 * MS
COMPILE, TUNE, LOAD = 1_500 * MS, 1_800 * MS, 20 * MS  # of one candidate, of one search, of one variant
WARM, TOKEN = 10 * MS, 4 * MS  # a warm request, and its first token
CANDIDATES = 6
SHORT, LONG = (512, 1024), (16_384, 24_576, 32_768)
LENGTHS = (*SHORT, *LONG)
TRAFFIC = (*SHORT, *SHORT * 30, *(length for length in LONG for _ in range(2)), *SHORT * 14)
BUCKETS = """[tool.tprof.buckets.context]
kernels = ["attention"]
short = {M = "1..4096"}
long = {M = "16384.."}
"""
COLD_NS = CANDIDATES * (COMPILE + LOAD) + TUNE


@dataclass
class Serving:
    """One thread that serves request after request."""

    writer: Writer
    now: int = S
    seen: int = 0

    def request(self, length: int, *, cold: bool) -> None:
        w, begun = self.writer, self.now
        request = w.begin("request", None, "generate", begun, request_id=f"r{self.seen}")
        serve = w.begin("serve", None, "generate", begun, request=request)
        self.seen += 1
        search = self.tune(request, length) if cold else 0
        w.launch(self.now + MS, self.now + MS + 20_000, LENGTHS.index(length) + 1, span=search, request=request)
        token = w.begin("range", None, "first_token", self.now + 2 * MS, request=request)
        w.end(token, self.now + TOKEN)
        self.now += WARM
        w.end(serve, self.now)
        w.end(request, self.now)
        self.now += MS

    def tune(self, request: int, length: int) -> int:
        """A search: each candidate is compiled, loaded and timed."""
        w, shape = self.writer, LENGTHS.index(length) + 1
        search = w.begin("autotune", "autotune", "attention", self.now, request=request, configs=CANDIDATES)
        for i in range(CANDIDATES):
            number, compiled = CANDIDATES * shape + i, self.now + COMPILE
            w.kernel(number, "attention")
            said = {"parent": search, "request": request, "config": {"BLOCK": 16 << i}, "text": f"BLOCK: {16 << i}"}
            one = w.begin("candidate", "autotune", "attention", self.now, **said)
            inside = {"parent": one, "request": request}
            w.span(
                "jit", "compile", "attention", self.now, compiled, done={"cache_hit": False, "kernel": number}, **inside
            )
            w.span("load", "module_load", "attention", compiled, compiled + LOAD, kernel=number, **inside)
            w.launch(compiled + LOAD + MS, compiled + LOAD + 2 * MS, shape, span=one, request=request)
            self.now = compiled + LOAD + TUNE // CANDIDATES
            w.end(one, self.now, timings_ms=[1.0 + i, 1.0, 1.0])
        w.end(search, self.now, best="BLOCK: 16", config={"BLOCK": 16})
        return search


def incident(folder: Path, *, prepared: bool = False) -> Path:
    """The recording; `prepared`: the same traffic after everything was pinned and warmed up."""
    writer = Writer()
    writer.kernel(1, "attention")
    for number, length in enumerate(LENGTHS, 1):
        q = {"dtype": "bfloat16", "shape": [length, 128], "stride": [128, 1]}
        writer.shape(number, 1, number, grid=(length // 128, 32), q=q, M=length)
    serving, seen = Serving(writer), set()
    for length in TRAFFIC:
        serving.request(length, cold=not prepared and length not in seen)
        seen.add(length)
    run_json(folder)
    return writer.write(folder)
