"""Writes small run directories by docs/run-directory.md, without the recorder."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

WALL = 1_790_000_000_000_000_000  # UTC of the monotonic zero


@dataclass
class Writer:
    """The journal of one process; times are ns on the monotonic clock."""

    pid: int = 100
    host: str = "box"
    lines: list[dict] = field(default_factory=list)
    launches: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    _next: int = 0

    def __post_init__(self) -> None:
        first = {
            "type": "process",
            "format_version": 1,
            "pid": self.pid,
            "ppid": 1,
            "host": self.host,
            "program": "serve.py",
        }
        self.lines = [first | {"versions": {"tprof": "0.1.0"}, "t_ns": 0, "wall_ns": WALL, "error_ns": 40}]

    def begin(self, kind, phase, name, t, *, parent=0, tid=1, request=0, **attrs) -> int:
        self._next += 1
        line = {"type": "begin", "id": self._next, "parent": parent, "kind": kind, "phase": phase, "name": name}
        self.lines.append(line | {"tid": tid, "request": request, "t_ns": t, "attrs": attrs})
        return self._next

    def end(self, span, t, *, ok=True, error=None, **attrs) -> None:
        line = {"type": "end", "id": span, "t_ns": t, "ok": ok, "attrs": attrs}
        self.lines.append(line | ({"error": error} if error else {}))

    def span(self, kind, phase, name, start, end, *, parent=0, tid=1, request=0, done=None, **attrs) -> int:
        found = self.begin(kind, phase, name, start, parent=parent, tid=tid, request=request, **attrs)
        self.end(found, end, **(done or {}))
        return found

    def kernel(self, number, name) -> None:
        self.lines.append({"type": "kernel", "id": number, "name": name, "hash": f"hash{number}", "binary_bytes": 1000})

    def shape(self, number, kernel, t, grid=(8,), **args) -> None:
        self.lines.append(
            {"type": "shape", "id": number, "kernel": kernel, "t_ns": t, "grid": list(grid), "args": args}
        )

    def launch(self, start, end, shape, *, span=0, request=0, tid=1) -> None:
        self.launches.append((tid, start, end, shape, span, request))

    def write(self, folder: Path, *, cut_line: str = "", cut_bytes: int = 0) -> Path:
        folder.mkdir(exist_ok=True)
        text = "".join(json.dumps(line) + "\n" for line in self.lines)
        (folder / f"process-{self.pid}.jsonl").write_text(text + cut_line)
        data = struct.pack("<8sII", b"TPROFLCH", 1, 28)
        for tid in dict.fromkeys(row[0] for row in self.launches):
            rows = [row[1:] for row in self.launches if row[0] == tid]
            columns = list(zip(*rows, strict=True))
            data += struct.pack("<4sIqq", b"CHNK", len(rows), tid, 0)
            data += b"".join(struct.pack(f"<{len(rows)}{'qqiii'[i]}", *c) for i, c in enumerate(columns))
        (folder / f"process-{self.pid}.launches").write_bytes(data[: len(data) - cut_bytes])
        return folder


def run_json(folder: Path, **said) -> None:
    folder.mkdir(exist_ok=True)
    whole = {
        "format": "tprof-run",
        "format_version": 1,
        "created": {"t_ns": 0, "wall_ns": WALL, "error_ns": 40},
        "host": "box",
    }
    (folder / "run.json").write_text(json.dumps(whole | said))


def cold_request() -> Writer:
    """One request on thread 1: a compile with stages, a load, a cold launch, then a warm one."""
    w = Writer()
    request = w.begin("request", None, "generate", 1_000, request_id="r1")
    serve = w.begin("serve", None, "generate", 1_000, request=request, request_id="r1")
    jit = w.begin("jit", "compile", "mm", 2_000, request=request)
    w.span("cache", "cache", "mm.json", 2_100, 2_300, parent=jit, request=request, op="get", done={"hit": False})
    w.span("stage", "compile", "mm/cubin", 3_000, 7_000, parent=jit, request=request, stage="cubin")
    w.kernel(1, "mm")
    w.end(jit, 8_000, cache_hit=False, kernel=1)
    w.span("load", "module_load", "mm", 8_100, 9_000, request=request, kernel=1, done={"registers": 32, "spills": 0})
    w.shape(1, 1, 9_050, x={"dtype": "float32", "shape": [1024], "stride": [1]}, n=1024)
    w.launch(9_100, 9_200, 1, span=jit, request=request)
    w.launch(9_500, 9_600, 1, request=request)
    w.end(serve, 10_000)
    w.end(request, 10_000)
    return w
