"""Traces that every renderer must cope with: nothing, one event, hostile names, a real cold start."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import tprof

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = (
    '<script>alert("x")</script>',
    "a|b`c`\\d*e_f[g](h) @everyone",
    "\x1b[31mred\x1b[0m\x07\x00\nsecond line",
    "\u202egnp.exe\u2066 right to left",
    '=HYPERLINK("http://example.invalid")',
    "void ns::kernel<" + "T, " * 2000 + "T>(int)",
    "lone \ud800 surrogate",
    '\'; DROP TABLE x; -- &amp; " onmouseover="y',
)


def event(name: str, ts: int, dur: int, cat: str, tid: int = 1, **args: object) -> dict[str, object]:
    pid = 0 if cat == "kernel" else 10
    return {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def launched(name: str, ts: int, correlation: int) -> list[dict[str, object]]:
    """A launch call and its kernel."""
    return [
        event("cudaLaunchKernel", ts, 5, "cuda_runtime", correlation=correlation),
        event(name, ts + 10, 20, "kernel", tid=7, correlation=correlation, stream=7, device=0, context=1),
    ]


def opened(folder: Path, events: list[dict[str, object]]) -> tprof.Trace:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    return tprof.load(path)


@pytest.fixture(scope="session")
def empty(tmp_path_factory: pytest.TempPathFactory) -> tprof.Trace:
    return opened(tmp_path_factory.mktemp("empty"), [])


@pytest.fixture(scope="session")
def one_event(tmp_path_factory: pytest.TempPathFactory) -> tprof.Trace:
    kernel = event("lonely", 100, 20, "kernel", tid=7, stream=7, device=0, context=1)
    return opened(tmp_path_factory.mktemp("one"), [kernel])


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> tprof.Trace:
    events = [e for i, name in enumerate(HOSTILE) for e in launched(name, 100 * i, i + 1)]
    ranges = [event("request " + name, 100 * i, 50, "user_annotation") for i, name in enumerate(HOSTILE)]
    return opened(tmp_path_factory.mktemp("hostile"), [*events, *ranges])


@pytest.fixture(scope="session")
def cold_start(request: pytest.FixtureRequest) -> tprof.Trace:
    return tprof.load(request.config.rootpath / "sample_traces" / "h200-nsight.sqlite.gz")


@pytest.fixture(params=["empty", "one_event", "hostile", "cold_start"])
def trace(request: pytest.FixtureRequest) -> tprof.Trace:
    return request.getfixturevalue(request.param)
