"""Damaged and cut files: every whole event is kept, what was lost is counted and located, and nothing else raises."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tprof.errors import SourceError
from tprof.read import inflate, torch_document, torch_salvage
from tprof.read.torch_json import read_torch

if TYPE_CHECKING:
    from pathlib import Path

    from tprof.model import Trace

KINETO = "\n  },\n  {"


def event(number: int, **extra: Any) -> dict[str, Any]:
    base = {"ph": "X", "cat": "cpu_op", "name": f"op{number}", "pid": 1, "tid": 2, "ts": number + 0.125, "dur": 1.5}
    return {**base, "args": {"External id": number}, **extra}


def read(folder: Path, content: str | bytes) -> Trace:
    path = folder / "trace.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_torch(path, "trace.json")


def names(trace: Trace) -> list[str]:
    return trace.host["name"].to_pylist()


def noted(trace: Trace) -> dict[str, int]:
    return {note.code: note.count for note in trace.notes if note.code != "no-device-events"}


def styles(events: list[dict[str, Any]]) -> dict[str, str]:
    body = {"schemaVersion": 1, "traceEvents": events, "traceName": "x"}
    kineto = ",\n  ".join("{\n    " + json.dumps(e)[1:-1].replace('"ts"', '\n    "ts"') + "\n  }" for e in events)
    return {
        "compact": json.dumps(body, separators=(",", ":")),
        "spaced": json.dumps(body),
        "indent1": json.dumps(body, indent=1),
        "indent4": json.dumps(body, indent=4),
        "kineto": '{\n  "schemaVersion": 1,\n  "traceEvents": [\n  ' + kineto + '\n  ],\n  "traceName": "x"\n}',
        "bare": json.dumps(events),
        "lines": "[\n" + ",\n".join(json.dumps(e) for e in events) + "\n]\n",
        "bom": "\ufeff" + json.dumps(body),
        "space": " \n\n" + json.dumps(body),
        "tail": json.dumps({"traceEvents": events, "deviceProperties": [{"id": 0, "name": "G"}], "schemaVersion": 1}),
    }


@pytest.mark.parametrize("style", styles([]))
@pytest.mark.parametrize("block", [1, 64, 1 << 20])
def test_any_layout_and_any_block_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, style: str, block: int) -> None:
    monkeypatch.setattr(torch_document, "BLOCK_BYTES", block)
    monkeypatch.setattr(torch_document, "_WINDOW", max(block, 3))
    monkeypatch.setattr(inflate, "READ_BYTES", min(block, 100))
    events = [event(n, args={"list": [{"name": "x", "ts": 1}, {"name": "y", "ts": 2}]}) for n in range(30)]
    trace = read(tmp_path, styles(events)[style])
    assert names(trace) == [e["name"] for e in events]
    assert trace.host["start_ns"].to_pylist() == [n * 1000 + 125 for n in range(30)]
    assert noted(trace) == {}
    assert trace.meta.get("schemaVersion") == (None if style in ("bare", "lines") else 1)


@pytest.mark.parametrize("block", [64, 300, 1000])
def test_damage_at_the_edge_of_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(torch_document, "BLOCK_BYTES", block)
    monkeypatch.setattr(torch_document, "_WINDOW", block)
    monkeypatch.setattr(inflate, "READ_BYTES", 64)
    lines = [json.dumps(event(n, list=[{"name": "x"}, {"name": "y"}])) for n in range(40)]
    wanted = [f"op{n}" for n in range(40)]
    for bad in range(3, 40, 4):
        lines[bad] = lines[bad].replace(f"op{bad}", "a\\cd")
        wanted[bad] = "a\\cd"
    monkeypatch.setattr(torch_salvage, "STRETCH", 1000)
    trace = read(tmp_path, '{"traceEvents":[' + ", ".join(lines) + "]}")
    assert names(trace) == wanted
    assert noted(trace) == {"bad-escape": 10}


@pytest.mark.parametrize(
    ("bad", "code", "name"),
    [
        (r'"name":"C:\new\Lib\torch\_x.py(1): f"', "bad-escape", r"C:\new\Lib\torch\_x.py(1): f"),
        ('"name":"a\x01b\nc"', "control-character", "a b c"),
        ('"name":"{"a": "b", "c": 1}.py(3): f"', "bad-quote", '{"a": "b", "c": 1}.py(3): f'),
        (b'"name":"a\xffb"', "not-utf8", "a\ufffdb"),
        ('"name":"n", "flops":NaN', "not-a-number", "n"),
        ('"name":"n", "cname":"a "q" b"', "bad-quote", "n"),
        ('"name":"n", bp":"e"', "missing-quote", "n"),
    ],
)
def test_known_damage_is_repaired(tmp_path: Path, bad: str | bytes, code: str, name: str) -> None:
    text = bad if isinstance(bad, bytes) else bad.encode()
    lines = [json.dumps(event(n)).encode() for n in range(5)]
    lines[2] = lines[2].replace(b'"name": "op2"', text)
    trace = read(tmp_path, b'{"traceEvents":[\n' + b",\n".join(lines) + b"]}")
    assert names(trace) == ["op0", "op1", name, "op3", "op4"]
    assert noted(trace) == {code: 1}
    assert "line 4)" in next(n.message for n in trace.notes if n.code == code)


@pytest.mark.parametrize("junk", ["oops", "None,", "}", "]]", "'x': 1}"])
def test_junk_between_events(tmp_path: Path, junk: str) -> None:
    lines = [json.dumps(event(n)) for n in range(4)]
    trace = read(tmp_path, "[\n" + ",\n".join([*lines[:2], junk + "\n" + lines[2], lines[3]]) + "]")
    assert names(trace) == ["op0", "op1", "op2", "op3"]
    assert noted(trace) == {"invalid-json": 1}
    assert "line 4)" in trace.notes[0].message


def test_missing_commas(tmp_path: Path) -> None:
    trace = read(tmp_path, '{"traceEvents":[' + "\n".join(json.dumps(event(n)) for n in range(4)) + "]}")
    assert names(trace) == ["op0", "op1", "op2", "op3"]


def test_hopeless_event_is_lost_and_located(tmp_path: Path) -> None:
    lines = [json.dumps(event(n)) for n in range(4)]
    lines[1] = '{"ph": "X", "name": "op1", "ts": 5 6 7}'
    trace = read(tmp_path, "[\n" + ",\n".join(lines) + "\n]")
    assert names(trace) == ["op0", "op2", "op3"]
    assert noted(trace) == {"invalid-json": 1}
    assert trace.sources["rows_dropped"][0].as_py() == 1
    assert "line 3)" in trace.notes[0].message


def test_nesting_without_end(tmp_path: Path) -> None:
    deep = json.dumps(event(1)).replace('"External id": 1', '"deep": ' + "[" * 200_000)
    trace = read(tmp_path, "[" + ",\n".join([json.dumps(event(0)), deep, json.dumps(event(2))]) + "]")
    assert {"op0", "op2"} <= set(names(trace))
    assert noted(trace) == {"invalid-json": 1}


def test_types_other_than_usual(tmp_path: Path) -> None:
    odd = event(1, pid="7", tid=8.0, name=12, args={"External id": "5", "correlation": None, "Input Dims": [[1, 2]]})
    trace = read(tmp_path, json.dumps([event(0), odd, event(2, args=[1]), event(3, args=None), event(4, cat=None)]))
    assert names(trace) == ["op0", "12", "op2", "op3", "op4"]
    row = trace.host.to_pylist()[1]
    assert (row["pid"], row["tid"], row["external_id"], row["correlation"]) == (7, 8, 5, None)
    assert noted(trace) == {}


def test_damage_in_a_large_file_costs_only_its_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_document, "BLOCK_BYTES", 1 << 18)
    lines = [json.dumps(event(n)) for n in range(20_000)]
    for bad in (5, 9_000, 19_999):
        lines[bad] = lines[bad].replace(f"op{bad}", "a\\b\\cd")
    trace = read(tmp_path, gzip.compress(("[\n" + ",\n".join(lines) + "]").encode()))
    assert trace.host.num_rows == 20_000
    assert noted(trace) == {"bad-escape": 3}


def test_cut_at_every_byte_loses_no_whole_event(tmp_path: Path) -> None:
    events = [event(n, name=f"op{n} }} ] {{") for n in range(2)]
    for style, text in styles(events).items():
        if style not in ("compact", "kineto"):
            continue
        data = text.encode()
        ends = [data.index(f'"External id":{"" if style == "compact" else " "}{n}'.encode()) for n in range(2)]
        for cut in range(data.index(b"[") + 1, len(data)):
            whole = sum(_closed(data, end) <= cut for end in ends)
            assert len(names(read(tmp_path, data[:cut]))) == whole, (style, cut)


def _closed(data: bytes, at: int) -> int:
    """Position behind the second closing brace from `at` on: that of the event."""
    return data.index(b"}", data.index(b"}", at) + 1) + 1


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_mutation_raises_nothing_but_source_error(tmp_path: Path, data: st.DataObject) -> None:
    style = data.draw(st.sampled_from(sorted(styles([]))))
    text = bytearray(styles([event(n) for n in range(4)])[style].encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        instead = st.binary(max_size=3) | st.sampled_from([b'"', b"}", b"]", b"{", b"\\"])
        text[at : at + data.draw(st.integers(0, 3))] = data.draw(instead)
        if not text:
            return
    content = bytes(text)
    if data.draw(st.booleans()):
        content = gzip.compress(content)[: data.draw(st.integers(20, 400))]
    try:
        trace = read(tmp_path, content)
    except SourceError:
        return
    assert trace.host.num_rows <= 5


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(victim=st.integers(0, 5), offset=st.integers(0, 400), byte=st.integers(0, 255))
def test_one_bad_byte_costs_at_most_its_event_and_the_next(tmp_path: Path, victim: int, offset: int, byte: int) -> None:
    lines = [json.dumps(event(n)).encode() for n in range(6)]
    at = offset % len(lines[victim])
    lines[victim] = lines[victim][:at] + bytes([byte]) + lines[victim][at + 1 :]
    kept = names(read(tmp_path, b'{"traceEvents":[\n' + b",\n".join(lines) + b"\n]}"))
    assert len({f"op{n}" for n in range(6)} - set(kept) - {f"op{victim}"}) <= 1
