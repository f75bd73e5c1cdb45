"""Reads a run directory by docs/run-directory.md, without the product's reader: for the tests of the recorder."""

from __future__ import annotations

import json
import struct
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Process:
    """One stem of a run."""

    records: list[dict]
    launches: list[dict] = field(default_factory=list)

    def of(self, kind: str) -> list[dict]:
        return [r for r in self.records if r["type"] == kind]

    @property
    def spans(self) -> dict[int, dict]:
        """Span id -> begin and end in one; `end` is None where there is none."""
        found = {}
        for r in self.of("begin"):
            found[r["id"]] = {**r, "end": None, "ok": None, "error": "", "attrs": dict(r.get("attrs", {}))}
        for r in self.of("end"):
            span = found[r["id"]]
            span |= {"end": r["t_ns"], "ok": r["ok"], "error": r.get("error", "")}
            span["attrs"] |= r.get("attrs", {})
        return found

    def kind(self, *kinds: str) -> list[dict]:
        return [s for s in self.spans.values() if s["kind"] in kinds]

    def counts(self) -> Counter:
        """Spans by (kind, op or stage, hit, ok)."""
        return Counter(
            (s["kind"], s["attrs"].get("op") or s["attrs"].get("stage"), s["attrs"].get("hit"), s["ok"])
            for s in self.spans.values()
        )

    @property
    def notes(self) -> list[str]:
        return [r["code"] for r in self.of("note")]


def read_process(path: Path) -> Process:
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b"", "the last line is cut"
    return Process([json.loads(line) for line in lines], read_launches(path.with_suffix(".launches")))


def read_launches(path: Path) -> list[dict]:
    data = path.read_bytes()
    assert struct.unpack_from("<8sII", data) == (b"TPROFLCH", 1, 28)
    found, at = [], 16
    while at < len(data):
        magic, n, tid, _ = struct.unpack_from("<4sIqq", data, at)
        assert magic == b"CHNK"
        columns = struct.unpack_from(f"<{n}q{n}q{n}i{n}i{n}i", data, at + 24)
        at += 24 + 28 * n
        names = ("t_enter", "t_exit", "shape", "span", "request")
        rows = zip(*(columns[i * n : (i + 1) * n] for i in range(5)), strict=True)
        found += [{"tid": tid, **dict(zip(names, row, strict=True))} for row in rows]
    return found


def read_run(directory: Path) -> list[Process]:
    """All processes of a run, oldest first."""
    found = [read_process(p) for p in Path(directory).glob("process-*.jsonl")]
    return sorted(found, key=lambda p: p.records[0]["t_ns"])


def only(directory: Path) -> Process:
    """The process of a run that has one."""
    (process,) = read_run(directory)
    return process
