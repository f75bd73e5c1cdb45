from __future__ import annotations

import io
import json
from itertools import pairwise

import pytest
from support.small import call, kernel, span, trace

import tprof
from tprof.align import align
from tprof.analyze import Attribution, Options, summarize
from tprof.analyze.stretches import device_phases, thread_phases
from tprof.present import perfetto

LARGE = 600_000  # bytes: larger cases take seconds each and hold nothing new
SOURCES = ("torch", "torch_real", "nsight")
TOTALS = ("name", "events", "span_ns", "busy_ns", "idle_ns", "sum_ns", "tail_ns", "overlaps")


def written(of: Attribution) -> bytes:
    out = io.BytesIO()
    phases = {"thread_phases": thread_phases(of), "device_phases": device_phases(of)}
    perfetto.write(of.trace, phases, out)
    return out.getvalue()


def small() -> Attribution:
    host = [
        span(0, 900, 'request "1"'),
        call(1_000, 1_100, correlation=5),
        call(1_200, 1_300, correlation=6),
        span(50, 2_000, "free", kind="startend", thread=1, tid=2),
        span(1_150, 1_150, "ready", kind="mark"),
    ]
    device = [kernel(1_400, 2_400, "k", correlation=5), kernel(2_401, 3_000, "k\\2", correlation=6)]
    return Attribution(align(trace(host, device)))


def test_each_kind_of_event():
    events = json.loads(written(small()))["traceEvents"]
    assert {e["ph"] for e in events} == set("MXibesf")
    kernels = [e for e in events if e.get("cat") == "kernel"]
    assert [(e["name"], e["ts"], e["dur"]) for e in kernels] == [("k", 1.4, 1.0), ("k\\2", 2.401, 0.599)]
    assert kernels[0]["args"] | {"correlation": 2, "stream": 7, "purpose": "work"} == kernels[0]["args"]
    begin, end = (next(e for e in events if e["ph"] == ph) for ph in "be")
    assert (begin["name"], begin["ts"], end["ts"], begin["id"] == end["id"]) == ("free", 0.05, 2.0, True)


def test_an_arrow_from_each_launch_to_its_kernel():
    events = json.loads(written(small()))["traceEvents"]
    starts = {e["id"]: e for e in events if e["ph"] == "s"}
    ends = {e["id"]: e for e in events if e["ph"] == "f"}
    assert {i: (starts[i]["ts"], ends[i]["ts"]) for i in ends} == {0: (1.0, 1.4), 1: (1.2, 2.401)}
    assert all(e["bp"] == "e" for e in ends.values())


def test_phases_of_a_track_partition_the_window():
    events = json.loads(written(small()))["traceEvents"]
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for e in events:
        if e.get("cat") == "tprof_phase":
            tracks.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["dur"]))
    device = max(tracks)
    assert round(sum(d for _, d in tracks[device]), 3) == 3.0
    for spans in tracks.values():
        spans.sort()
        assert all(round(s + d, 3) <= t for (s, d), (t, _) in pairwise(spans))


def check_schema(document: dict) -> None:
    """What Perfetto's importer asks of each event; it drops or misplaces others without a word."""
    open_ranges: dict[object, int] = {}
    for e in document["traceEvents"]:
        assert e["ph"] in "MXibesf"
        assert isinstance(e["name"], str)
        assert isinstance(e["pid"], int)
        assert isinstance(e["tid"], int)
        if e["ph"] == "M":
            continue
        assert e["ts"] >= 0
        assert e["ph"] != "X" or e["dur"] >= 0
        assert e["ph"] not in "besf" or isinstance(e["id"], int)
        if e["ph"] in "be":
            open_ranges[e["id"]] = open_ranges.get(e["id"], 0) + (1 if e["ph"] == "b" else -1)
    assert not any(open_ranges.values())


@pytest.mark.parametrize("folder", SOURCES)
def test_cases_read_back_with_the_same_device_time(folder, cases, tmp_path):
    """Windows may begin later: calls of the operating system and free ranges are drawn, but not read back."""
    seen = 0
    for path in sorted((cases / folder).rglob("*")):
        try:
            small_trace = path.name.endswith((".json", ".gz", ".sqlite")) and path.stat().st_size < LARGE
            original = tprof.load(path) if small_trace else None
        except tprof.SourceError:
            continue
        if original is None:
            continue
        copy = tmp_path / "copy.json"
        copy.write_bytes(written(original.attribution))
        check_schema(json.loads(copy.read_bytes()))
        again = summarize(tprof.load(copy).attribution, Options())
        before = original.summary().payload["devices"]
        after = again.payload["devices"]
        assert [[d[k] for k in TOTALS] for d in after] == [[d[k] for k in TOTALS] for d in before], path.name
        streams = [[(s["stream"], s["busy_ns"]) for d in devices for s in d["streams"]] for devices in (before, after)]
        assert streams[0] == streams[1], path.name
        seen += 1
    assert seen > 5


def test_an_empty_trace_is_valid():
    assert json.loads(written(Attribution(trace())))["traceEvents"]
