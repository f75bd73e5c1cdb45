"""Captures of one program that does what NVTX allows but nobody expects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from nsight_files import unpack

from tprof import model
from tprof.read.nsight import read_nsight

if TYPE_CHECKING:
    from pathlib import Path

U64 = (1 << 64) - 1


@pytest.fixture(params=["2022.4", "2023.4", "2024.2"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _read(cases: Path, tmp_path: Path, name: str) -> model.Trace:
    packed = cases / "nsight" / "own" / f"{name}.sqlite.gz"
    return read_nsight(unpack(packed, tmp_path), str(packed))


def _ranges(trace: model.Trace) -> list[dict[str, Any]]:
    return [r for r in trace.host.to_pylist() if r["kind"] in ("range", "startend")]


def _said(row: dict[str, Any]) -> tuple[str, str | None, dict[str, Any] | None]:
    return row["name"], row["domain"], json.loads(row["attrs"]) if row["attrs"] else None


def test_names_domains_and_payloads(cases: Path, tmp_path: Path, version: str) -> None:
    trace = _read(cases, tmp_path, f"cnvtx-{version}")
    rows = _ranges(trace)
    worker = next(r["tid"] for r in rows if r["name"] == "plain-in-thread")
    registered, category = "registered-string", {"category": "cat-three"}
    assert [_said(r) for r in rows] == [
        (registered, "cdom", {"payload": U64, **category, "end_tid": worker}),
        (registered, "cdom", {"payload": 2.5, **category}),
        (registered, "cdom", {"payload": 1.25, **category}),
        (registered, "cdom", {"payload": -7, **category}),
        ("bad\ufffd\ufffdutf8", None, None),
        ("zero", None, None),
        ("leaked", None, None),
        ("startend-leaked", None, None),
        (registered, "cdom", {"payload": -5}),
        ("plain-in-thread", None, None),
    ]
    assert [r["name"] for r in rows if r["kind"] == "startend"] == [registered, "startend-leaked"]


def test_a_range_belongs_to_the_thread_that_began_it(cases: Path, tmp_path: Path, version: str) -> None:
    trace = _read(cases, tmp_path, f"cnvtx-{version}")
    crossing, *others = _ranges(trace)
    assert crossing["thread"] == others[0]["thread"]
    names = dict(zip(trace.threads["tid"].to_pylist(), trace.threads["name"].to_pylist(), strict=True))
    assert names[json.loads(crossing["attrs"])["end_tid"]] == "named-worker"


def test_ranges_that_nobody_closed_are_noted(cases: Path, tmp_path: Path, version: str) -> None:
    trace = _read(cases, tmp_path, f"cnvtx-{version}")
    assert {n.code: n.count for n in trace.notes} == {"unclosed-ranges": 2, "not-utf8": 1, "no-kernels": 1}


def test_rows_that_are_no_ranges_are_counted(cases: Path, tmp_path: Path, version: str) -> None:
    trace = _read(cases, tmp_path, f"cnvtx-{version}")
    assert json.loads(trace.sources["rows_skipped"][0].as_py()) == {"NVTX_EVENTS": 5}
    assert trace.sources["rows_dropped"].to_pylist() == [0]


def test_each_process_names_its_own_domains(cases: Path, tmp_path: Path) -> None:
    rows = _ranges(_read(cases, tmp_path, "cap-2024.2"))
    assert {r["domain"] for r in rows if r["name"] == "outer"} == {"tprof.dom"}
    assert {(r["pid"], r["domain"]) for r in rows if r["name"] == "inner"} == {(9112, "child"), (9113, "child")}
    assert [r["domain"] for r in rows if r["name"] == "never-popped"] == ["leak"]


def test_any_text_survives(cases: Path, tmp_path: Path, version: str) -> None:
    names = [r["name"] for r in _ranges(_read(cases, tmp_path, f"cap-{version}"))]
    assert 'unicode-核心-😀 \x01ctl\ttab\nnl "q" <x>' in names
    assert "" in names
    assert max(map(len, names)) > 250


def test_processes_of_the_machine_that_have_no_events_are_left_out(cases: Path, tmp_path: Path) -> None:
    trace = _read(cases, tmp_path, "cap-2023.4")
    assert set(trace.processes["pid"].to_pylist()) == set(model.ints(trace.host, "pid").tolist())
