"""A run directory becomes host rows, kernels, candidates and shapes; what a kill cut off is counted, never fatal."""

from __future__ import annotations

import gzip
import json

import pytest
from support.runs import WALL, Writer, cold_request, run_json

from tprof.errors import SourceError
from tprof.model import ints
from tprof.read import expand, read_source


def only(folder):
    (trace,) = read_source(folder)
    return trace


def codes_of(trace):
    return [note.code for note in trace.notes]


def test_spans_and_launches_become_host_rows(tmp_path):
    trace = only(cold_request().write(tmp_path / "run"))
    host = trace.host.to_pylist()
    assert [(r["kind"], r["phase"], r["kernel"]) for r in host] == [
        ("request", None, None), ("serve", None, None), ("cold", "compile", "mm"), ("cold", "cache", "mm"),
        ("cold", "compile", "mm"), ("cold", "module_load", "mm"), ("launch", None, "mm"), ("launch", None, "mm"),
    ]  # fmt: skip
    assert [r["request"] for r in host] == [None, *[0] * 7]
    assert [r["cold"] for r in host[-2:]] == [True, False]
    assert host[-1]["shape_key"] == "grid 8 x float32[1024] n=1024"
    assert (trace.epoch_ns, trace.epoch_error_ns) == (WALL, 40)


def test_a_first_use_is_split_into_compile_lookup_and_load(tmp_path):
    (row,) = only(cold_request().write(tmp_path / "run")).compiles.to_pylist()
    assert (row["compile_ns"], row["cache_ns"], row["module_load_ns"]) == (5_800, 200, 900)
    assert (row["cache_hit"], row["loads"], row["basis"]) == (False, 1, "recorded")
    assert (row["start_ns"], row["end_ns"]) == (2_000, 9_000)


def test_launches_are_counted_by_shape(tmp_path):
    (row,) = only(cold_request().write(tmp_path / "run")).shape_keys.to_pylist()
    assert (row["kernel"], row["launches"], row["cold_launches"]) == ("mm", 2, 1)


def test_candidates_keep_their_failure_and_the_winner(tmp_path):
    w = Writer()
    search = w.begin("autotune", "autotune", "mm", 100, configs=2)
    failed = w.begin("candidate", "autotune", "mm", 200, parent=search, text="BM: 64", config={"BM": 64})
    w.end(failed, 300, timings_ms=None, failed="load mm: OutOfResources: shared memory")
    good = w.begin("candidate", "autotune", "mm", 300, parent=search, text="BM: 32", config={"BM": 32})
    w.end(good, 500, timings_ms=[0.25, 0.2, 0.3])
    w.end(search, 600, config={"BM": 32})
    w.kernel(1, "mm")
    w.shape(1, 1, 350)
    w.launch(350, 360, 1, span=good)
    first, second = only(w.write(tmp_path / "run")).candidates.to_pylist()
    assert first["error"] == "load mm: OutOfResources: shared memory"
    assert (first["median_ns"], first["winner"], first["launches"]) == (None, False, 0)
    assert (second["median_ns"], second["winner"], second["launches"]) == (250_000, True, 1)


def test_a_killed_compile_is_named_and_kept(tmp_path):
    w = cold_request()
    jit = w.begin("jit", "compile", "attention", 11_000)
    w.begin("stage", "compile", "attention/cubin", 12_000, parent=jit, stage="cubin")
    trace = only(w.write(tmp_path / "run", cut_line='{"type":"end","id":'))
    assert codes_of(trace) == ["cut-journal", "unfinished-span"]
    assert "attention/cubin" in trace.notes[1].message
    assert ints(trace.host, "end_ns").max() == 12_000


def test_a_cut_chunk_of_launches_ends_the_file(tmp_path):
    trace = only(cold_request().write(tmp_path / "run", cut_bytes=3))
    assert "cut-launches" in codes_of(trace)
    assert "launch" not in trace.host["kind"].to_pylist()


def test_one_trace_per_process_on_one_clock(tmp_path):
    for pid in (7, 8):
        w = cold_request()
        w.pid = pid
        w.lines[0]["pid"] = pid
        w.write(tmp_path / "run")
    run_json(tmp_path / "run")
    first, second = read_source(tmp_path / "run")
    assert first.epoch_ns == second.epoch_ns
    assert sorted(t.threads["pid"][0].as_py() for t in (first, second)) == [7, 8]


def test_a_run_directory_is_one_source(tmp_path):
    run = cold_request().write(tmp_path / "runs" / "a") if (tmp_path / "runs").mkdir() is None else None
    (tmp_path / "runs" / "b.json").write_text('{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 1}]}')
    assert expand([tmp_path / "runs"]) == [run, tmp_path / "runs" / "b.json"]
    assert expand([run]) == [run]


def test_unknown_records_and_attributes_are_no_error(tmp_path):
    w = cold_request()
    w.lines.append({"type": "weather", "sky": "clear"})
    w.lines[1]["attrs"]["colour"] = "red"
    trace = only(w.write(tmp_path / "run"))
    assert not trace.notes
    assert json.loads(trace.host["attrs"][0].as_py())["colour"] == "red"


def test_errors_are_one_sentence(tmp_path):
    run_json(tmp_path / "empty")
    with pytest.raises(SourceError, match="without any recorded process"):
        read_source(tmp_path / "empty")
    run = cold_request().write(tmp_path / "newer")
    run_json(run, format_version=2)
    with pytest.raises(SourceError, match="run format 2, this tprof reads 1; update tprof"):
        read_source(run)


def test_the_recorders_own_notes_are_passed_on(tmp_path):
    w = cold_request()
    w.lines.append({"type": "note", "code": "hook-disabled", "message": "the launch hook raised", "t_ns": 20_000})
    w.lines.append({"type": "close", "t_ns": 20_000, "wall_ns": WALL + 20_000, "lost": {"launches": 3, "records": 0}})
    assert codes_of(only(w.write(tmp_path / "run"))) == ["hook-disabled", "lost-records"]


def test_gzipped_files_read_the_same(tmp_path):
    plain = cold_request().write(tmp_path / "run")
    before = only(plain)
    for file in plain.glob("process-*"):
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    after = only(plain)
    assert after.host.equals(before.host)
    assert after.compiles.equals(before.compiles)
    assert after.sources.equals(before.sources)
