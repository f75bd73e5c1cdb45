"""Scrubbed copies: the same summary, and none of the bytes that name somebody."""

from __future__ import annotations

import gzip
import json
import re
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from support import runs

import tprof
from tprof.cli import main
from tprof.errors import DONE, FAILED, USAGE, SourceError
from tprof.present import tabular
from tprof.scrub import scrub
from tprof.scrub.words import Words

if TYPE_CHECKING:
    from pathlib import Path

HOME = "/home" + "/alice"  # in one piece it would be a path of a machine
LARGE = 600_000  # bytes: larger cases take seconds each and hold nothing new
# Damage that a rewritten file no longer has, so that its warning goes.
MENDED = {"cut-gzip", "trailing-garbage", "bad-header"}
FOLDERS = re.compile(rb"(?<![\w.)])(?:[A-Za-z]:)?(?:\\?/[\w.@+~%-]+){2,}")


def plain(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data


def summary(path: Path) -> dict:
    said = json.loads(tabular.json_text(tprof.load(path).summary()).replace(str(path), "SOURCE"))
    said["warnings"] = [w for w in said["warnings"] if w["code"] not in MENDED]
    return said


def secrets(path: Path) -> set[bytes]:
    """Settings of the machine that an export holds and tprof does not read, and command lines."""
    with closing(sqlite3.connect(":memory:")) as db:
        db.deserialize(plain(path))
        tables = {name for (name,) in db.execute("SELECT name FROM sqlite_master")}
        rows = (
            db.execute("SELECT name, value FROM TARGET_INFO_SYSTEM_ENV") if "TARGET_INFO_SYSTEM_ENV" in tables else ()
        )
        kept = ("CpuCores", "CudaDriverVersion", "KernelVersion", "OsName")
        found = {value for name, value in rows if name not in kept and value}
        names = db.execute("SELECT name FROM PROCESSES").fetchall() if "PROCESSES" in tables else []
        found |= {name for (name,) in names if name and "/" in name}
    return {text.encode() for text in found if len(text) > 9 and not text.isdigit()}


@pytest.mark.parametrize("folder", ["torch", "torch_real", "nsight"])
def test_every_case(folder, cases, tmp_path):
    seen = private = 0
    for path in sorted((cases / folder).rglob("*")):
        if not path.name.endswith((".json", ".gz", ".sqlite")) or path.stat().st_size > LARGE:
            continue
        try:
            before = summary(path)
        except SourceError:
            continue
        copy = tmp_path / path.name
        scrub(path, copy, Words())
        assert summary(copy) == before, path.name
        if path.name == "truncated.json.gz":
            continue
        data = plain(copy)
        named = secrets(path) if data.startswith(b"SQLite") else set()
        assert not [word for word in named if word in data], path.name
        assert data.startswith(b"SQLite") or not FOLDERS.findall(data), path.name
        private += len(named)
        seen += 1
    assert seen > 5
    assert private or folder != "nsight"


def private_torch(path: Path) -> Path:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1.0, "dur": 2.0}
    frame = event | {"cat": "python_function", "name": f"{HOME}/secret/train.py(3): step"}
    named = {
        "ph": "M",
        "name": "process_name",
        "pid": 1,
        "tid": 0,
        "args": {"name": "/opt/py/python train.py --key=hunter2"},
    }
    said = {
        "schemaVersion": 1,
        "host_name": "gpu7.inner",
        "environment": {"TOKEN": "hunter2"},
        "traceEvents": [event, frame, named],
    }
    path.write_text(json.dumps(said | {"traceName": f"{HOME}/out/t.json", "note": "by alice"}, indent=1))
    return path


def test_torch_fields_names_and_arguments(tmp_path):
    path, copy = private_torch(tmp_path / "a.json"), tmp_path / "b.json"
    scrub(path, copy, Words())
    said = json.loads(copy.read_text())
    assert [e.get("name") for e in said["traceEvents"]] == ["aten::mm", "train.py(3): step", "process_name"]
    assert said["traceEvents"][2]["args"] == {"name": "python"}
    assert {k: v for k, v in said.items() if k != "traceEvents"} == {
        "schemaVersion": 1, "host_name": "host-1", "traceName": "t.json",
    }  # fmt: skip
    assert copy.read_text().count("\n") >= path.read_text().count("\n") - 12


def test_a_large_trace_is_cut_between_names(tmp_path):
    path, copy = tmp_path / "a.json", tmp_path / "b.json"
    event = {"ph": "X", "cat": "cpu_op", "name": f"{HOME}/deep/folder/x.py", "pid": 1, "tid": 1, "ts": 1, "dur": 1}
    path.write_text(json.dumps({"traceEvents": [event] * 60_000, "environment": {"A": "hunter2"}}))
    scrub(path, copy, Words())
    said = json.loads(copy.read_text())
    assert {e["name"] for e in said["traceEvents"]} == {"x.py"}
    assert (len(said["traceEvents"]), list(said)) == (60_000, ["traceEvents"])


def test_sqlite_leaves_nothing_in_free_pages(tmp_path):
    path, copy = tmp_path / "a.sqlite", tmp_path / "b.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(f"""
            CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT NOT NULL);
            INSERT INTO StringIds VALUES (1, 'request 1 by alice'), (2, 'TOKEN=hunter2'), (3, '{HOME}/bin/serve');
            CREATE TABLE NVTX_EVENTS (start INTEGER, "end" INTEGER, eventType INTEGER, text TEXT, textId INTEGER,
                globalTid INTEGER, binaryData TEXT);
            INSERT INTO NVTX_EVENTS VALUES (1, 9, 59, NULL, 1, 16777217, 'hunter2'),
                (2, 3, 59, '{HOME}/x/y.py', NULL, 16777217, NULL);
            CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);
            INSERT INTO PROCESSES VALUES (16777216, 1, '{HOME}/bin/serve --key hunter2'),
                (33554432, 2, 'sshd: alice');
            CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);
            INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', 'gpu7'), ('OsName', 'Linux'),
                ('Home', '{HOME}');
            CREATE TABLE PROFILER_ENV (value TEXT NOT NULL);
            INSERT INTO PROFILER_ENV VALUES ('hunter2');
        """)  # fmt: skip
    scrub(path, copy, Words())
    data = copy.read_bytes()
    assert not [word for word in (b"alice", b"hunter2", b"gpu7", b"/home", b"sshd") if word in data]
    with closing(sqlite3.connect(copy)) as db:
        assert db.execute("SELECT value FROM StringIds").fetchall() == [("request 1 by user",)]
        assert db.execute("SELECT text FROM NVTX_EVENTS").fetchall() == [(None,), ("y.py",)]
        assert db.execute("SELECT name FROM PROCESSES").fetchall() == [("serve",)]
        assert db.execute("SELECT * FROM TARGET_INFO_SYSTEM_ENV").fetchall() == [
            ("Hostname", "host-1"),
            ("OsName", "Linux"),
        ]


def private_run(folder: Path) -> Path:
    run = runs.cold_request()
    run.host = run.lines[0]["host"] = "gpu7"
    known = {"type": "specialization", "id": 1, "span": 3, "function": "m.mm", "file": f"{HOME}/m.py", "line": 3}
    run.lines.append(known | {"key": "k", "arguments": [], "options": {}, "warmup": False})
    run.lines.append({"type": "note", "code": "write-failed", "message": f"gpu7: {HOME}/full", "t_ns": 1})
    run.write(folder)
    runs.run_json(folder, host="gpu7", environment={"TRITON_CACHE_DIR": f"{HOME}/hunter2"})
    private_torch(folder / "process-100.torch.json")
    (folder / "nsight.nsys-rep").write_bytes(b"alice")
    return folder


def test_run_directory(tmp_path, capsys):
    run, copy = private_run(tmp_path / "run"), tmp_path / "copy"
    assert main(["scrub", str(run), "-o", str(copy)]) == DONE
    assert "without nsight.nsys-rep" in capsys.readouterr().out
    assert sorted(p.name for p in copy.iterdir()) == sorted({p.name for p in run.iterdir()} - {"nsight.nsys-rep"})
    for file in copy.iterdir():
        assert not re.search(rb"alice|hunter2|gpu7|/home", file.read_bytes()), file.name
    before, after = summary(run), summary(copy)
    assert [w["code"] for w in after.pop("warnings")] == [w["code"] for w in before.pop("warnings")]
    assert after == before


@pytest.mark.parametrize("name", ["a.nsys-rep", "a_pqtdir/StringIds.parquet"])
def test_what_cannot_be_written_is_said(tmp_path, capsys, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(b"\0\1\2\3 report")
    assert main(["scrub", str(tmp_path / name.partition("/")[0]), "-o", str(tmp_path / "b")]) == FAILED
    assert "cannot be written in this form; export the report" in capsys.readouterr().err
    assert not (tmp_path / "b").exists()


def test_other_json_is_refused(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"password": "hunter2"}')
    with pytest.raises(SourceError, match="no traceEvents"):
        scrub(path, tmp_path / "b.json", Words())
    assert not (tmp_path / "b.json").exists()


def test_one_that_cannot_be_written_does_not_stop_the_others(tmp_path):
    private_torch(tmp_path / "b.json")
    (tmp_path / "a.nsys-rep").write_bytes(b"\0\1\2\3 report")
    assert (
        main(["scrub", str(tmp_path / "a.nsys-rep"), str(tmp_path / "b.json"), "-o", str(tmp_path / "out")]) == FAILED
    )
    assert [p.name for p in (tmp_path / "out").iterdir()] == ["b.json"]


def test_a_source_is_never_overwritten(tmp_path):
    path = private_torch(tmp_path / "a.json")
    before = path.read_bytes()
    assert main(["scrub", str(path), "-o", str(path), "--force"]) == USAGE
    assert main(["scrub", str(path), "-o", str(tmp_path / "b.json")]) == DONE
    assert main(["scrub", str(path), "-o", str(tmp_path / "b.json")]) == USAGE
    assert path.read_bytes() == before
